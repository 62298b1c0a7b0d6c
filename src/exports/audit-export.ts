import type { Database } from '#src/store/engine/database.ts';
import { INSTALLATION, recordAction } from '#src/store/tables/audit-log.ts';
import { describeRequest, type ExportRequest } from './export-request.ts';
import { describeTally, type OpenExport } from './open-export.ts';

/** Writes the entries of an export in the audit log, of its account or of the installation. */
export type ExportAudit = {
  /** Before the first byte: who asks for what. */
  begun(): Promise<void>;
  /** Before the last byte: the rows and the sums. */
  ended(): Promise<void>;
  /** Instead of the end. Never rejects: the error that broke the export off is the one to report. */
  brokeOff(why: string): Promise<void>;
};

/** Creates the audit of an export. @param actor who asks for it. */
export function auditExport(
  database: Database,
  { fileName, tally }: OpenExport,
  { asked, actor }: { readonly asked: ExportRequest; readonly actor: string },
): ExportAudit {
  const accountId = asked.accountId ?? INSTALLATION;
  const record = (action: string, detail: string) =>
    recordAction(database, { accountId, actor, action, subject: fileName, detail: detail.slice(0, 1_000) });
  return {
    begun: () => record('export', describeRequest(asked)),
    ended: () => record('exported', describeTally(tally)),
    brokeOff: (why) => record('export-broke-off', `${why} after ${tally.rows} rows`).catch(() => {}),
  };
}
