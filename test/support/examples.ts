import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  changesOf,
  type Exchange,
  parseAsWritten,
  readExchanges,
  responseOf,
} from '#tools/openapi/exchanges.ts';

const DIRECTORY = fileURLToPath(new URL('../examples/', import.meta.url));

/** Reads every example. */
export function loadExamples(): Exchange[] {
  return readExchanges(DIRECTORY);
}

const RECORDED: readonly (readonly [pattern: RegExp, placeholder: string])[] = [
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, '<timestamp>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<provider timestamp>'],
  [/(?<="hash":")[0-9a-f]{64}(?=")/g, '<64 hexadecimal digits>'],
  [/127\.0\.0\.1:\d+/g, '<host>'],
  [/whsec_[A-Za-z0-9+/=]+/g, '<secret>'],
  [/(?<="(?:authorization_code|auth_code)":")[0-9A-Z]{6}(?=")/g, '<6 letters or digits>'],
  [/(?<="(?:retrieval_reference_number|rrn)":")\d{12}(?=")/g, '<12 digits>'],
];
/** The sandbox's fixed ids. */
const KNOWN = /11111111-1111-4111-8111-111111111111|c0000000-|5e550000-|70ce0000-/;

/** Writes an example with its actual response, for review and commit: `RECORD=1 vitest run …`. */
export function record(example: Exchange, text: string): void {
  const { rpc, name, summary, parameters, given, body, like } = example;
  let told = text;
  for (const [pattern, placeholder] of RECORDED)
    told = told.replaceAll(pattern, (one) => (KNOWN.test(one) ? one : placeholder));
  const seen = told === '' ? undefined : parseAsWritten(told);
  const response = like === '' ? seen : changesOf(responseOf(DIRECTORY, like), seen);
  const file = [rpc, name, 'json'].filter(Boolean).join('.');
  const written = { summary, ...(given && { given }), parameters, body, ...(like && { like }), response };
  writeFileSync(DIRECTORY + file, `${JSON.stringify(written, null, 2)}\n`);
}
