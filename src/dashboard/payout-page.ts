import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  listPayoutLines,
  type Payout,
  type PayoutAmounts,
  type PayoutLine,
  type PayoutSums,
  sumPayoutByKind,
} from '#src/store/tables/settlement-payouts.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD } from './frame.ts';
import { addressOf } from './search-form.ts';
import { amountText, badge, count, moneyText, numberCell, option, shortened, time } from './show.ts';
import type { Page, Visit } from './visit.ts';

const PAGE_SIZE = 100;
const PARTS = [
  ['gross', 'Gross'],
  ['fee', 'Fee'],
  ['tax', 'Tax'],
  ['net', 'Net'],
] as const;
const PAYOUT_KINDS: ReadonlySet<string> = new Set(['payout', 'payout_reversal']);

/** Returns the URL of a payout's page. */
export function payoutAddress({ identity, reference }: Payout, after = ''): string {
  const query = new URLSearchParams({ at: identity, payout: reference, ...(after && { after }) });
  return `${DASHBOARD}/settlement/payout?${query}`;
}

/** The page of one payout: what its lines add up to, what was paid out, and what remains. */
export async function payoutPage(database: Database, visit: Visit): Promise<Page> {
  const payout = { identity: visit.query('at'), reference: visit.query('payout') };
  const sums = await sumPayoutByKind(database, payout);
  const [first] = sums;
  if (!first) throw new ServiceError('NOT_FOUND', 'no imported report has lines of this payout');
  const lines = await listPayoutLines(database, payout, positionOf(visit.query('after')), PAGE_SIZE + 1);
  const shown = lines.slice(0, PAGE_SIZE);
  const last = lines.length > PAGE_SIZE ? shown.at(-1) : undefined;
  const paidAt = sums.find(({ kind }) => kind === 'payout')?.lastAt;
  const content = html`<p class="quiet"><a href="${DASHBOARD}/settlement">Settlement</a> / payout</p>
<div class="heading"><h1 class="long">Payout ${shortened(payout.reference, 255)}</h1><p class="quiet">Connection ${shortened(first.connectionId, 60)}${paidAt ? html`, paid out ${time(paidAt)} UTC` : NOTHING}</p></div>
${[...Map.groupBy(sums, ({ settlementCurrency }) => settlementCurrency).values()].map(sumTable)}
${lineTable(shown)}
${last ? html`<nav class="pages" aria-label="Pages"><a class="button quiet" href="${payoutAddress(payout, `${last.at} ${last.key}`)}">Later lines</a></nav>` : NOTHING}`;
  return { title: 'Payout', section: '/settlement', content };
}

/** Renders the form that finds a payout. @param accounts ids of connections, by the identities of their accounts. */
export function payoutForm(accounts: ReadonlyMap<string, string>): Html {
  if (accounts.size === 0) return NOTHING;
  return html`<form class="card filters" method="get" action="${DASHBOARD}/settlement/payout">
<div><label for="at">Account of</label><select id="at" name="at">${[...accounts].map(([identity, id]) => option(identity, shortened(id, 60), ''))}</select></div>
<div class="grow"><label for="payout">Payout’s reference, as the provider’s reports name it</label><input id="payout" name="payout" required maxlength="255" autocomplete="off" spellcheck="false"></div>
<div><button>Find the payout</button></div></form>`;
}

const POSITION = /^(-infinity|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[+-]\d\d(?::\d\d)?) (.{1,300})$/;

function positionOf(text: string): Pick<PayoutLine, 'at' | 'key'> | undefined {
  const [, at, key] = POSITION.exec(text) ?? [];
  return at === undefined || key === undefined ? undefined : { at, key };
}

/** Renders the sums of one currency, by kind. */
function sumTable(sums: readonly PayoutSums[]): Html {
  const [{ settlementCurrency: currency }] = sums as readonly [PayoutSums];
  const own = sums.filter(({ kind }) => !PAYOUT_KINDS.has(kind));
  const paid = sums.filter(({ kind }) => PAYOUT_KINDS.has(kind));
  const remainder = total(sums, 'net');
  const row = (name: string, n: number, of: readonly PayoutSums[]) =>
    html`<tr><th scope="row">${name}</th>${numberCell('Lines', count(n))}${PARTS.map(([part, column]) => numberCell(column, amountText({ minorUnits: total(of, part), currency })))}</tr>`;
  const told =
    own.length === 0 || paid.length === 0
      ? html`<p>${paid.length === 0 ? 'The payout’s own line was not imported yet.' : 'The lines of this payout were not imported yet.'}</p>`
      : html`<p>Remainder ${moneyText({ minorUnits: remainder, currency })}: ${remainder === 0n ? 'the lines and the payout add up.' : 'the lines and the payout do not add up.'} ${badge(remainder === 0n ? 'BALANCED' : 'UNBALANCED')}</p>`;
  return html`<section class="card scroll" tabindex="0"><h2>Sums in ${currency}</h2><table class="lines"><thead><tr><th scope="col">Lines</th><th scope="col" class="number">Number</th><th scope="col" class="number">Gross</th><th scope="col" class="number">Fee</th><th scope="col" class="number">Tax</th><th scope="col" class="number">Net</th></tr></thead><tbody>${own.map((one) => row(named(one.kind), one.lines, [one]))}${own.length > 1 ? row('all lines', linesOf(own), own) : NOTHING}${paid.map((one) => row(named(one.kind), one.lines, [one]))}</tbody></table>${told}</section>`;
}

function lineTable(lines: readonly PayoutLine[]): Html {
  return html`<div class="card scroll" tabindex="0"><table class="lines"><thead><tr><th scope="col">Time (UTC)</th><th scope="col">Line</th><th scope="col" class="number">As the payer saw it</th><th scope="col" class="number">Gross</th><th scope="col" class="number">Fee</th><th scope="col" class="number">Tax</th><th scope="col" class="number">Net</th><th scope="col">Payment</th></tr></thead><tbody>${lines.map(lineRow)}</tbody></table></div>`;
}

function lineRow(one: PayoutLine): Html {
  const { kind, rawKind, minorUnits, currency, settlementCurrency } = one;
  const seen = minorUnits === undefined || currency === undefined ? '–' : moneyText({ minorUnits, currency });
  const word = rawKind === kind ? NOTHING : html` <span class="quiet">${shortened(rawKind, 60)}</span>`;
  return html`<tr><td class="nowrap">${time(one.occurredAt)}</td><th scope="row">${named(kind)}${word}</th>${numberCell('As the payer saw it', seen)}${PARTS.map(([part, column]) => numberCell(column, amountText({ minorUnits: one[part], currency: settlementCurrency })))}<td>${paymentOf(one)}</td></tr>`;
}

/** Links to the payment of a line. */
function paymentOf({ result, ourId, providerReference }: PayoutLine): Html {
  if (result === 'none_expected') return html`–`;
  if (result !== 'matched') return badge(result ?? 'waiting');
  if (ourId !== undefined) {
    return html`<a href="${DASHBOARD}/payments/${ourId}"><code>${ourId.slice(-12)}</code></a>`;
  }
  const text = providerReference ?? '';
  return html`<a href="${addressOf({ by: 'reference', text })}"><code>${shortened(text, 40)}</code></a>`;
}

function total(sums: readonly PayoutSums[], part: keyof Omit<PayoutAmounts, 'settlementCurrency'>): bigint {
  return sums.reduce((sum, one) => sum + one[part], 0n);
}

function linesOf(sums: readonly PayoutSums[]): number {
  return sums.reduce((sum, { lines }) => sum + lines, 0);
}

const named = (kind: string) => kind.replaceAll('_', ' ');
