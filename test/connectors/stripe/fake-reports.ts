import type { JsonObject } from '@bufbuild/protobuf';
import { type Answer, invalid, newId } from './fake-wire.ts';

const REPORT_TYPE = 'payout_reconciliation.itemized.5';
/** The columns that Stripe documents, besides those of metadata. */
const KNOWN =
  'automatic_payout_id automatic_payout_effective_at automatic_payout_effective_at_utc balance_transaction_id created created_utc available_on available_on_utc currency gross fee net reporting_category source_id description customer_facing_amount customer_facing_currency customer_id customer_email charge_id payment_intent_id charge_created_utc invoice_id order_id payment_method_type card_brand card_country card_funding';
const DEFAULT_COLUMNS =
  'automatic_payout_id balance_transaction_id created_utc currency gross fee net description';

type Run = { readonly id: string; readonly text: string; looks: number };

/** Reports as the fake writes them: the lines of the payouts that took effect within an interval. */
export function createReports() {
  const runs = new Map<string, Run>();
  const files = new Map<string, string>();
  const reports = {
    /** Lines by column. Each takes effect at its `automatic_payout_effective_at_utc`. */
    lines: [] as Record<string, string>[],
    /** Unix seconds. */
    available: { start: Date.UTC(2026, 0, 1) / 1000, end: Date.UTC(2026, 9, 1, 5) / 1000 },
    /** Number of times that a run is seen as pending. */
    pending: 1,
    failure: '',
    /** Larger than any file: what a run says about the size of its result. */
    size: undefined as number | undefined,
    runs,
    /** Answers the calls of reports; undefined for any other. */
    answer(call: string, fields: JsonObject): Answer | undefined {
      if (call === `GET /v1/reporting/report_types/${REPORT_TYPE}`) return ok(typeOf(reports.available));
      if (call === 'POST /v1/reporting/report_runs') return ok(create(fields));
      const [, runId] = /^GET \/v1\/reporting\/report_runs\/(\w+)$/.exec(call) ?? [];
      if (runId !== undefined) return ok(look(runId));
      const [, fileId = ''] = /^GET \/v1\/files\/(\w+)\/contents$/.exec(call) ?? [];
      if (fileId === '') return undefined;
      const text = files.get(fileId);
      if (text === undefined) throw invalid('No such file', {}, 404);
      // The only body that is no object.
      return { status: 200, body: text as unknown as JsonObject };
    },
  };

  function create({ report_type, parameters, ...rest }: JsonObject): JsonObject {
    if (report_type !== REPORT_TYPE || Object.keys(rest).length > 0) throw invalid('Unknown report type');
    const { interval_start, interval_end, columns, ...others } = parameters as JsonObject;
    if (Object.keys(others).length > 0) throw invalid('Received unknown parameter');
    const [start, end] = [Number(interval_start), Number(interval_end)];
    const { available } = reports;
    if (!(start > available.start && end > start && end < available.end)) {
      throw invalid(`The interval must be within ${available.start} and ${available.end}`, {
        param: 'parameters[interval_end]',
      });
    }
    const wanted = (columns as string[] | undefined) ?? DEFAULT_COLUMNS.split(' ');
    const isKnown = (name: string) =>
      KNOWN.split(' ').includes(name) || /^(payment|refund)_metadata\[\w+\]$/.test(name);
    if (!wanted.every(isKnown)) throw invalid('Received an unknown column', { param: 'parameters[columns]' });
    const own = reports.lines.filter(({ automatic_payout_effective_at_utc: at = '' }) => {
      const seconds = Date.parse(`${at.replace(' ', 'T')}Z`) / 1000;
      return seconds >= start && seconds < end;
    });
    const rows = [wanted, ...own.map((line) => wanted.map((name) => line[name] ?? ''))];
    const run = {
      id: newId('frr'),
      text: rows.map((cells) => `${cells.map((cell) => `"${cell}"`).join(',')}\n`).join(''),
      looks: 0,
    };
    runs.set(run.id, run);
    return shown(run, 'pending');
  }

  function look(id: string): JsonObject {
    const run = runs.get(id);
    if (!run) throw invalid('No such report run', {}, 404);
    run.looks += 1;
    if (run.looks <= reports.pending) return shown(run, 'pending');
    return reports.failure === '' ? shown(run, 'succeeded') : shown(run, 'failed');
  }

  function shown(run: Run, status: string): JsonObject {
    const fileId = run.id.replace('frr', 'file');
    if (status === 'succeeded') files.set(fileId, run.text);
    const url = `https://files.stripe.com/v1/files/${fileId}/contents`;
    const size = reports.size ?? Buffer.byteLength(run.text);
    return {
      ...{ id: run.id, object: 'reporting.report_run', report_type: REPORT_TYPE, status },
      error: status === 'failed' ? reports.failure : null,
      result: status === 'succeeded' ? { id: fileId, object: 'file', size, type: 'csv', url } : null,
    };
  }

  return reports;
}

function typeOf({ start, end }: { readonly start: number; readonly end: number }): JsonObject {
  return {
    ...{ id: REPORT_TYPE, object: 'reporting.report_type', name: 'Itemized payouts' },
    ...{ data_available_start: start, data_available_end: end },
  };
}

function ok(body: JsonObject): Answer {
  return { status: 200, body };
}
