import type { JsonObject } from '@bufbuild/protobuf';
import type { AccountReport, Environment, ProviderHosts } from '../port/account-report.ts';
import type { HttpResult } from './http-client.ts';
import { probeProblem, readJsonObject } from './provider-answer.ts';

const TOO_MANY = 429;

/**
 * Reports credentials that the provider accepts.
 *
 * @param account the provider's id of their account; undefined if they may not read it.
 * @param expected the account in the connection's settings.
 */
export function acceptedReport(
  account: string | undefined,
  environment: Environment | undefined,
  expected?: string,
): AccountReport {
  if (account === undefined || expected === undefined || account === expected) {
    return { result: 'ACCEPTED', account, environment };
  }
  const detail = `the credentials belong to the account ${account}, and account_id is ${expected}`;
  return { result: 'REFUSED', detail };
}

/**
 * Reports a result in which the provider does not accept the credentials. Only a body in the provider's own form counts
 * as a refusal: a proxy uses the same statuses.
 */
export function notAcceptedReport(
  result: HttpResult,
  isErrorBody: (body: JsonObject, status: number) => boolean,
): AccountReport {
  const detail = probeProblem(result);
  if (result.kind !== 'answer') return { result: 'UNREACHABLE', detail };
  const { status } = result;
  const body = readJsonObject(result.body);
  if (status === TOO_MANY || status < 400 || status >= 500 || !body || !isErrorBody(body, status)) {
    return { result: 'UNREACHABLE', detail };
  }
  return { result: status === 401 || status === 403 ? 'REFUSED' : 'NOT_TESTABLE', detail };
}

/** Returns the environment to which a provider's address belongs; undefined if it is not one of the provider's own. */
export function environmentAt({ TEST, LIVE }: ProviderHosts, address: string): Environment | undefined {
  if (isAt(TEST, address)) return 'TEST';
  return isAt(LIVE, address) ? 'LIVE' : undefined;
}

/** Returns true for an address of the provider's own, over HTTPS. */
export function isOwnAddress(hosts: ProviderHosts, address: string): boolean {
  return environmentAt(hosts, address) !== undefined;
}

function isAt(hosts: readonly string[], address: string): boolean {
  const { protocol, host = '' } = URL.parse(address) ?? {};
  return protocol === 'https:' && hosts.some((known) => isLike(known, host));
}

function isLike(known: string, host: string): boolean {
  const [before = '', after] = known.split('*');
  if (after === undefined) return known === host;
  const any = host.slice(before.length, host.length - after.length);
  return host.startsWith(before) && host.endsWith(after) && /^[a-z0-9-]+$/.test(any);
}
