import { DASHBOARD } from './frame.ts';
import type { Visit } from './visit.ts';

/** The states of differences, with their names; '' for open ones. */
export const STATES = [
  ['', 'Open'],
  ['resolved', 'Resolved'],
] as const;

/** The filter of the differences and the files; '' for all. */
export type SettlementFilter = {
  readonly connection: string;
  readonly kind: string;
  /** '' for open differences, or `resolved`. */
  readonly state: string;
};

/** Returns the URL of the page, with a filter. */
export function settlementAddress(
  filter: Partial<SettlementFilter>,
  more: Record<string, string> = {},
): string {
  const given = Object.entries({ ...filter, ...more }).filter(([, value]) => value !== '');
  return `${DASHBOARD}/settlement${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`;
}

/** Reads the filter of a page, or of the form's action. */
export function settlementFilter({ query }: Pick<Visit, 'query'>): SettlementFilter {
  return {
    connection: query('connection'),
    kind: query('kind'),
    state: query('state') === 'resolved' ? 'resolved' : '',
  };
}
