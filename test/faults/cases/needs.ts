import { ABILITIES, type Ability, type Provider } from '../providers/provider.ts';
import type { Case } from './case.ts';

const CARDS: readonly Ability[] = ['cards'];
const LOOKED_UP: readonly Ability[] = ['cards', 'look_ups'];
const FOUND_OR_NOT: readonly Ability[] = [...LOOKED_UP, 'lost_charges'];

/**
 * The features that cases need, keyed by prefixes of case names; the first match counts. Cases without a match need
 * cards.
 */
export const NEEDS: readonly (readonly [begins: string, needs: readonly Ability[]])[] = [
  ['a group of', ['cards', 'groups']],
  ['killed in recovery: closing', FOUND_OR_NOT],
  ['killed in recovery: postponing', FOUND_OR_NOT],
  ['killed in recovery', LOOKED_UP],
  ['provider: hang, reset, 5xx, before the charge', FOUND_OR_NOT],
  ['provider: a charge that was lost', LOOKED_UP],
  ['look-ups: ', LOOKED_UP],
  ['two replicas: one stopped past its lease', LOOKED_UP],
  ['a replica’s clock ten days ahead', ['cards', 'authorizations', 'redirects']],
  ['failover: killed between the first’s decline', FOUND_OR_NOT],
  ['failover: killed after the next attempt is begun', FOUND_OR_NOT],
  ['failover: killed', LOOKED_UP],
  ['failover: stopped past its lease', FOUND_OR_NOT],
  ['failover: the database down between', FOUND_OR_NOT],
  ['stored methods: ', []],
  ['wallet enrollments: ', ['enrollments']],
  ['operations: killed in recovery: asking', ['look_ups', 'refund_reads']],
  ['operations: killed in recovery: closing', ['look_ups', 'closings']],
  ['operations: killed in recovery: postponing', ['look_ups', 'closings']],
  ['operations: killed in recovery', ['look_ups']],
  ['operations: a capture against a cancel', ['authorizations']],
  ['operations: partial captures', ['authorizations']],
  ['operations: refunds made at the provider', ['dashboard']],
  ['operations: ', []],
  ['closings: ', ['payer_closings']],
  ['codes: killed after commit 2', ['codes']],
  ['codes: killed', ['codes', 'lost_codes']],
  ['codes: lost when', ['codes', 'look_ups']],
  ['codes: lost', ['codes', 'lost_codes']],
  ['codes: canceled', ['codes', 'code_closings']],
  ['codes: the payer pays', ['codes', 'code_closings']],
  ['codes: only the provider', ['codes', 'look_ups']],
  ['codes: paid after its end', ['codes', 'late_codes']],
  ['codes: transfers', ['codes', 'transfers']],
  ['codes: turned away', ['codes', 'lost_codes']],
  ['codes: ', ['codes']],
  ['payers: completion killed', ['redirects', 'completions']],
  ['payers: killed while one is redirected', ['redirects', 'look_ups']],
  ['payers: verification killed before the claim', ['cards', 'verifications', 'look_ups']],
  ['payers: verification killed', ['cards', 'verifications']],
  ['payers: a notification that contradicts the provider', ['redirects', 'unsigned_notifications']],
  ['payers: a payer who pays while the payment expires', ['redirects', 'late_payers']],
  ['payers: ', ['redirects']],
  ['webhooks: killed', []],
  ['a rolling release: operations', []],
];

/** Returns the reason why a case does not run with a provider; undefined if it does. */
export function notFor({ name: provider, abilities }: Provider, { name }: Case): string | undefined {
  const [, needs] = NEEDS.find(([begins]) => name.startsWith(begins)) ?? ['', CARDS];
  const lacking = needs.find((ability) => !abilities.has(ability));
  return lacking && `not for this provider: ${provider}: ${ABILITIES[lacking]}`;
}
