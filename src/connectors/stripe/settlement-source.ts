import type Stripe from 'stripe';
import type { Secret } from '#src/secret.ts';
import type { HttpResult } from '../kit/http-client.ts';
import { bodyOf, type FieldsOf, fields, numberOf, textLike, textOf } from '../kit/provider-answer.ts';
import { openProviderClient } from '../kit/provider-client.ts';
import {
  SettlementFetchError,
  type SettlementPeriod,
  type SettlementSource,
} from '../port/settlement-source.ts';
import { errorOf } from './answers.ts';
import type { StripeSettings } from './settings.ts';
import { COLUMNS } from './settlement.ts';
import { get, httpRequest, post, type Send, type StripeTarget, type Wire } from './to-provider.ts';

const REPORT_TYPE = 'payout_reconciliation.itemized.5';
/** Maximum size of a report. Larger ones are files to import: a process keeps the whole report in memory. */
const MAX_REPORT_BYTES = 32 * 1024 * 1024;
const DOWNLOAD_TIMEOUT_MS = 120_000;
/** Stripe's API, and the host of its files. Any other address serves both. */
const FILES: Readonly<Record<string, string>> = { 'https://api.stripe.com': 'https://files.stripe.com' };
const MAX_MESSAGE = 300;

const readType = fields({
  data_available_start: numberOf,
  data_available_end: numberOf,
} satisfies FieldsOf<Stripe.Reporting.ReportType>);

const readRun = fields({
  id: textLike(/^frr_[A-Za-z0-9_]{1,200}$/),
  status: textOf,
  error: textOf,
  result: fields({
    id: textLike(/^file_[A-Za-z0-9_]{1,200}$/),
    size: numberOf,
  } satisfies FieldsOf<Stripe.File>),
} satisfies FieldsOf<Stripe.Reporting.ReportRun>);

/**
 * Opens the source of an account's reports: itemized payouts, by report runs. A report has the same lines as the file from
 * the dashboard, so either may be imported first.
 *
 * @param begin starts a call of the API.
 */
export function openSettlementSource(
  { origin, apiKey, timeoutMs, fetchesSettlement }: StripeSettings,
  begin: () => Send,
  proxy: Secret | undefined,
): SettlementSource & { close(): Promise<void> } {
  let files: ReturnType<typeof openProviderClient<StripeTarget>> | undefined;
  const openFiles = () => {
    files ??= openProviderClient(
      {
        ...{ origin: FILES[origin] ?? origin, proxy, maxResponseBytes: MAX_REPORT_BYTES },
        timeoutMs: Math.max(timeoutMs, DOWNLOAD_TIMEOUT_MS),
      },
      (target: StripeTarget) => httpRequest(target, apiKey),
    );
    return files;
  };
  return {
    isDaily: fetchesSettlement,
    available: () => available(begin()),
    request: (period) => request(period, begin()),
    read: (id) => read(id, begin(), () => openFiles().begin()),
    close: async () => files?.close(),
  };
}

async function available(send: Send): Promise<SettlementPeriod> {
  const result = await send(get(`/v1/reporting/report_types/${REPORT_TYPE}`, {}));
  const { data_available_start: start, data_available_end: end } = readType(bodyOf(result));
  if (start === undefined || end === undefined) throw refused('read which reports there are', result);
  // A period lies at least a second within.
  return { from: new Date((start + 1) * 1000), before: new Date((end - 1) * 1000) };
}

async function request({ from, before }: SettlementPeriod, send: Send): Promise<string> {
  const parameters = {
    interval_start: Math.floor(from.getTime() / 1000),
    interval_end: Math.floor(before.getTime() / 1000),
    columns: COLUMNS,
  };
  const body = {
    report_type: REPORT_TYPE,
    parameters,
  } satisfies Wire<Stripe.Reporting.ReportRunCreateParams>;
  const result = await send(post('/v1/reporting/report_runs', body, undefined));
  const { id } = readRun(bodyOf(result));
  if (id === undefined) throw refused('request a report', result);
  return id;
}

async function read(id: string, send: Send, begin: () => Send): Promise<Uint8Array | undefined> {
  const result = await send(get(`/v1/reporting/report_runs/${id}`, {}));
  const run = readRun(bodyOf(result));
  if (run.id !== id) throw refused('read a report', result);
  if (run.status === 'pending') return undefined;
  const { id: fileId, size = 0 } = run.result;
  if (run.status !== 'succeeded' || fileId === undefined) {
    throw new SettlementFetchError(`Stripe could not write the report: ${run.error.slice(0, MAX_MESSAGE)}`);
  }
  if (size > MAX_REPORT_BYTES) {
    throw new SettlementFetchError(
      `the report has ${size} bytes, more than ${MAX_REPORT_BYTES}: fetch a shorter period, or import the file`,
    );
  }
  const file = await begin()(get(`/v1/files/${fileId}/contents`, {}));
  if (file.kind !== 'answer' || file.status !== 200) throw refused("read a report's file", file);
  return file.body;
}

/** Creates the error for an answer that does not do as asked. Stripe's text is shown only about a wrong request. */
function refused(what: string, result: HttpResult): SettlementFetchError {
  if (result.kind !== 'answer') return new SettlementFetchError(`could not ${what}: ${result.detail}`);
  const { status } = result;
  const error = errorOf(bodyOf(result, status));
  const text = status === 400 && error?.message ? `: ${error.message.slice(0, MAX_MESSAGE)}` : '';
  const advice =
    status === 401 || status === 403
      ? ': the API key must be allowed to write report runs and to read files'
      : text;
  return new SettlementFetchError(`could not ${what}: Stripe answered with HTTP ${status}${advice}`);
}
