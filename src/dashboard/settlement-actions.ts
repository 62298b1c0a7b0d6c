import type { FastifyRequest } from 'fastify';
import type { Admission } from '#src/api/admission.ts';
import { mayBeLarge } from '#src/api/body-limit.ts';
import { SettlementFileError } from '#src/connectors/port/settlement-line.ts';
import { ServiceError } from '#src/service-error.ts';
import { importSettlement } from '#src/settlement/import-settlement.ts';
import { settledConnection } from '#src/settlement/settled-connection.ts';
import type { Release } from '#src/slots.ts';
import { decideDifference } from '#src/store/tables/settlement-differences.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type DifferenceDecision, MAX_DIFFERENCE_NOTE } from './difference-table.ts';
import { notice } from './frame.ts';
import { noteOf } from './note.ts';
import { settlementAddress, settlementFilter } from './settlement-filter.ts';
import { type SettlementPageDeps, settlementPage } from './settlement-page.ts';
import { shortened } from './show.ts';
import type { Reply, Visit } from './visit.ts';

/** Dependencies of imports. */
export type ImportDeps = SettlementPageDeps & {
  /** Makes shutdown wait for the work. */
  readonly track: <T>(work: Promise<T>) => Promise<T>;
  readonly takeLarge: Admission['takeLarge'];
  /** Makes the service match the lines of imported reports now, in the background. */
  readonly wakeSettlement: () => void;
};

const NO_RELEASE: Release = () => {};
/** Seconds after which a refused upload is tried again. */
const RETRY_AFTER_S = 30;

/** Admits the upload of a report. @throws ServiceError SERVICE_UNAVAILABLE while another large body is there. */
export function admitReport({ takeLarge }: ImportDeps, request: FastifyRequest): Release {
  if (!mayBeLarge(request)) return NO_RELEASE;
  const release = takeLarge();
  if (release) return release;
  const message =
    'another report, or a change of the catalogue, is on its way; nothing was imported; try again later';
  throw new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: RETRY_AFTER_S });
}

/**
 * Imports an uploaded report, all of it or nothing, as the command does. The background work finds the transactions of its lines:
 * here, or at another replica if this one ends.
 */
export async function importReport(deps: ImportDeps, visit: Visit): Promise<Reply> {
  const refuse = (text: string) =>
    settlementPage(deps, visit, notice('refused', `Nothing was imported: ${text}.`));
  const { file } = visit;
  if (!file) return refuse('choose a file');
  const found = settledConnection(deps.opened(), visit.form('connection'));
  if (typeof found === 'string') return refuse('choose a connection');
  const { settled } = found;
  const given = { name: file.name, open: () => piecesOf(file.pieces) };
  try {
    const imported = await deps.track(
      importSettlement(deps.database, settled, given, { actor: visit.actor }),
    );
    deps.wakeSettlement();
    const before = imported === 'already imported';
    return {
      goTo: settlementAddress({}, before ? { did: 'again' } : { did: 'import', file: imported.fileId }),
    };
  } catch (error) {
    if (!(error instanceof SettlementFileError)) throw error;
    return refuse(`${shortened(file.name, 120)}: ${error.message}`);
  }
}

async function* piecesOf(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void> {
  yield* pieces;
}

/** Resolves a difference with a note, or opens it again, as the command does. */
export async function decideOn(
  deps: SettlementPageDeps,
  visit: Visit,
  decision: DifferenceDecision,
): Promise<Reply> {
  const accountId = visit.form('account');
  const note = noteOf(visit, MAX_DIFFERENCE_NOTE);
  if (note === '') return settlementPage(deps, visit, notice('refused', 'Nothing was done: say why.'));
  const named = { accountId, kind: visit.form('difference'), subject: visit.form('subject') };
  const isDone =
    isUuid(accountId) &&
    (await decideDifference(deps.database, named, {
      identity: visit.form('identity'),
      isResolved: decision === 'resolve',
      actor: visit.actor,
      note,
    }));
  if (!isDone) throw new ServiceError('NOT_FOUND', 'there is no such difference any more; nothing was done');
  return { goTo: settlementAddress(settlementFilter(visit), { did: decision }) };
}
