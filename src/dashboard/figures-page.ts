import type { Database } from '#src/store/engine/database.ts';
import { isTimeout } from '#src/store/engine/database-error.ts';
import { listAccountNames } from '#src/store/tables/accounts.ts';
import { type RecentSum, sumRecentTotals, sumTotals, type Total } from '#src/store/tables/payment-totals.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { type LinkTo, moneyCharts, paymentCharts, searchOf } from './figures-charts.ts';
import {
  type FiguresPeriod,
  isRecent,
  readFiguresPeriod,
  SPANS,
  type Stretch,
  totalsPeriodOf,
  USUAL_SPAN,
} from './figures-period.ts';
import { type Counted, decided, type Sum, sumOf, total } from './figures-sums.ts';
import { missingNodes } from './frame.ts';
import { addressOf, type Search } from './search-form.ts';
import { amountText, count, option, percent, shortened } from './show.ts';
import type { Page, Visit } from './visit.ts';

const MAX_ACCOUNTS = 1_000;
/** Limit on the rows of each table. */
const MAX_ROWS = 12;

/** A period and the time before it, with rows of each. */
type Compared<Row> = {
  readonly period: FiguresPeriod;
  readonly now: readonly Row[];
  readonly past: readonly Row[];
  readonly linkTo: LinkTo;
};

/** Figures of a period against the time before, from the totals by hour of creation. */
export async function figuresPage(database: Database, visit: Visit): Promise<Page> {
  const accounts = await listAccountNames(database, MAX_ACCOUNTS);
  const chosen = visit.query('account_id');
  const accountId = isUuid(chosen) ? chosen : undefined;
  const today = new Date();
  const period = readFiguresPeriod(visit.query, today);
  const hours = totalsPeriodOf(period);
  const hasRecent = isRecent(period, today);
  const read = Promise.all([
    sumTotals(database, hours, accountId),
    hasRecent ? sumRecentTotals(database, hours, accountId) : [],
  ]);
  const found = await read.catch((error) => {
    if (isTimeout(error)) return undefined;
    throw error;
  });
  const [totals, recent] = found ?? [[], []];
  const linkTo = linksOf(accountId ?? (accounts.length === 1 ? (accounts[0]?.id ?? '') : ''), period.zone);
  const all: Compared<Total> = {
    ...{ period, linkTo },
    now: totals.filter(({ part }) => part >= 0),
    past: totals.filter(({ part }) => part < 0),
  };
  const faults = [
    ...missingNodes(database),
    ...(period.fault === undefined ? [] : [period.fault]),
    ...(found ? [] : ['Adding up took too long: choose an account or a shorter period.']),
  ];
  const content = html`<div class="heading"><h1>Figures</h1><p class="quiet">Payments created ${stretchOf(period)}, against ${stretchOf(period.past)} (${period.zone})</p></div>
${faults.length > 0 && html`<ul class="alarms">${faults.map((text) => html`<li>${text}</li>`)}</ul>`}
${form(visit, accounts)}
${tiles(all)}
${explanation(period)}
<div class="columns">
${paymentCharts(all.now, period, linkTo)}
${moneyCharts(all.now, period, linkTo)}
${moneyTable(all)}
${tableBy('By connection', 'Connection', all, ({ connectionId }) => ({ connection: connectionId }))}
${tableBy('By method', 'Method', all, ({ methodType }) => ({ method: methodType }))}
${hasRecent ? recentTables(recent, all) : NOTHING}
</div>`;
  return { title: 'Figures', section: '/figures', content };
}

/** Returns links to searches. The search asks for an account if it needs one. */
function linksOf(account: string, zone: string): LinkTo {
  const minute = (moment: Temporal.ZonedDateTime) =>
    moment.toPlainDateTime().toString({ smallestUnit: 'minute' });
  return (text, { from, before }, search) => {
    if (!/[1-9]/.test(text)) return html`${text}`;
    const period = { from: minute(from), to: minute(before.subtract({ minutes: 1 })) };
    const address = addressOf({ ...search, ...period, account, zone: zone === 'UTC' ? '' : zone });
    return html`<a href="${address}">${text}</a>`;
  };
}

function stretchOf({ from, before }: Stretch): Html {
  const text = (moment: Temporal.ZonedDateTime) =>
    moment.toPlainDateTime().toString({ smallestUnit: 'minute' }).replace('T', ' ');
  return html`from ${text(from)} to ${text(before)}`;
}

function explanation({ covers }: FiguresPeriod): Html {
  return html`<p class="quiet">The period is ${covers}. Each payment counts in the hour in which it was created, with its money, refunds and disputes so far. The last two hours are counted every five minutes, older ones once a day for 35 days.<br>
The approval rate is the approved payments among those with a known outcome: approved, declined, and failed (not sent, expired or canceled before an approval). It leaves out unknown outcomes, and payments that are open because their payer has yet to act. Below each number of a table is the number of the time before.</p>`;
}

function form(visit: Visit, accounts: readonly { readonly id: string; readonly name: string }[]): Html {
  const given = visit.query;
  return html`<form class="card filters" method="get">
<div><label for="span">Period</label><select id="span" name="span">${Object.entries(SPANS).map(([key, name]) => option(key, name, given('span') || USUAL_SPAN))}</select></div>
<div><label for="account_id">Account</label><select id="account_id" name="account_id">${option('', 'All', given('account_id'))}${accounts.map(({ id, name }) => option(id, shortened(name, 60), given('account_id')))}</select></div>
<div class="moment"><label for="from">or from</label><input id="from" name="from" type="datetime-local" value="${given('from')}"></div>
<div class="moment"><label for="before">before</label><input id="before" name="before" type="datetime-local" value="${given('before')}"></div>
<div><label for="zone">Time zone</label><input id="zone" name="zone" value="${given('zone')}" maxlength="64" autocomplete="off" spellcheck="false" placeholder="UTC"></div>
<div><button>Show</button></div>
</form>`;
}

function tiles({ now, past, period, linkTo }: Compared<Total>): Html {
  const [sum, before] = [sumOf(now), sumOf(past)];
  const tile = (name: string, search: Partial<Search>, figure: (sum: Sum) => string) =>
    html`<div class="tile"><p class="name">${name}</p><p class="value">${linkTo(figure(sum), period, search)}</p><p class="quiet">before: ${linkTo(figure(before), period.past, search)}</p></div>`;
  return html`<div class="tiles">
${tile('Approved payments', searchOf('APPROVED'), ({ APPROVED }) => count(APPROVED))}
${tile('Approval rate', searchOf('APPROVED'), (one) => percent(one.APPROVED, decided(one)))}
${tile('Declined', searchOf('DECLINED'), ({ DECLINED }) => count(DECLINED))}
${tile('Failed', searchOf('FAILED'), ({ FAILED }) => count(FAILED))}
${tile('Unknown outcomes', searchOf('UNKNOWN'), ({ UNKNOWN }) => count(UNKNOWN))}
${tile('Open', searchOf('OPEN'), ({ OPEN }) => count(OPEN))}
${tile('Refunds', { refunded: '1' }, ({ refunds }) => count(refunds))}
${tile('Disputes', { disputed: '1' }, ({ disputes }) => count(disputes))}
</div>`;
}

function moneyTable({ now, past, period, linkTo }: Compared<Total>): Html {
  const rows = pairsOf(now, past, ({ currency }) => currency)
    .filter(({ key }) => key !== '')
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  const row = ({ key: currency, own, old }: Pair<Total>) => {
    const approved = { currency, outcome: 'APPROVED' };
    const cell = (figure: (totals: readonly Total[]) => string, search: Partial<Search>) =>
      pairCell(linkTo(figure(own), period, search), linkTo(figure(old), period.past, search));
    const moved = (key: 'approvedMinorUnits' | 'refundedMinorUnits') => (totals: readonly Total[]) =>
      amountText({ minorUnits: totals.reduce((sum, one) => sum + one[key], 0n), currency });
    return html`<tr><th scope="row">${currency}</th>${cell((totals) => count(sumOf(totals).APPROVED), approved)}${cell(moved('approvedMinorUnits'), approved)}${cell(moved('refundedMinorUnits'), { currency, refunded: '1' })}</tr>`;
  };
  return card(
    'Approved money',
    [
      ['Currency'],
      ...(['Payments', 'Approved', 'Refunded'] as const).map((name) => [name, 'number'] as const),
    ],
    rows.map(row),
    'Purchases and captures that succeeded, as in the export of movements; an authorization is no money yet.',
  );
}

/** The rows of one key in the period and in the time before, of which one may have none. */
type Pair<Row> = {
  readonly key: string;
  readonly first: Row;
  readonly own: readonly Row[];
  readonly old: readonly Row[];
};

function pairsOf<Row>(now: readonly Row[], past: readonly Row[], keyOf: (row: Row) => string): Pair<Row>[] {
  const [own, old] = [Map.groupBy(now, keyOf), Map.groupBy(past, keyOf)];
  return [...Map.groupBy([...now, ...past], keyOf)].map(([key, [first]]) => ({
    ...{ key, first: first as Row },
    ...{ own: own.get(key) ?? [], old: old.get(key) ?? [] },
  }));
}

/** A number, and below it the number of the time before. */
function pairCell(own: Html, old: Html): Html {
  return html`<td class="number">${own}<br><span class="quiet">${old}</span></td>`;
}

/** A table of payments by what a search for them has. */
function tableBy<Row extends Counted>(
  title: string,
  name: string,
  { now, past, period, linkTo }: Compared<Row>,
  searchFor: (row: Row) => Partial<Search>,
): Html {
  const keyOf = (row: Row) => Object.values(searchFor(row))[0] ?? '';
  const rows = pairsOf(now, past, keyOf)
    .map(({ key, first, own, old }) => ({ key, search: searchFor(first), sum: sumOf(own), old: sumOf(old) }))
    .sort((a, b) => total(b.sum) - total(a.sum) || total(b.old) - total(a.old));
  const pair = (
    figure: (sum: Sum) => string,
    { search, sum, old }: (typeof rows)[number],
    more: Partial<Search> = {},
  ) =>
    pairCell(
      linkTo(figure(sum), period, { ...search, ...more }),
      linkTo(figure(old), period.past, { ...search, ...more }),
    );
  return card(
    title,
    [[name], ...(['Payments', 'Rate', 'Unknown'] as const).map((head) => [head, 'number'] as const)],
    rows
      .slice(0, MAX_ROWS)
      .map(
        (row) =>
          html`<tr><th scope="row">${row.key.replaceAll('_', ' ') || 'unknown'}</th>${pair((sum) => count(total(sum)), row)}${pair((sum) => percent(sum.APPROVED, decided(sum)), row, searchOf('APPROVED'))}${pair((sum) => count(sum.UNKNOWN), row, searchOf('UNKNOWN'))}</tr>`,
      ),
    restOf(rows.length),
  );
}

/** The tables by country and by code, for which there are totals of two days. */
function recentTables(recent: readonly RecentSum[], { period, linkTo }: Compared<Total>): Html {
  const of = (kind: RecentSum['kind'], isPast: boolean) =>
    recent.filter((one) => one.kind === kind && one.isPast === isPast);
  const compared = (kind: RecentSum['kind']) => ({
    period,
    linkTo,
    now: of(kind, false),
    past: of(kind, true),
  });
  return html`${tableBy('By country', 'Country', compared('COUNTRY'), ({ name }) => ({ country: name }))}
${codeTable(compared('CODE'))}`;
}

function codeTable({ now, past, period, linkTo }: Compared<RecentSum>): Html {
  const [all, allBefore] = [sumOf(now).DECLINED, sumOf(past).DECLINED];
  const rows = pairsOf(now, past, ({ name }) => name)
    .map(({ key, own, old }) => ({ name: key, payments: sumOf(own).DECLINED, old: sumOf(old).DECLINED }))
    .sort((a, b) => b.payments - a.payments || b.old - a.old);
  const row = ({ name, payments, old }: (typeof rows)[number]) => {
    const search = { code: name, ...searchOf('DECLINED') };
    return html`<tr><th scope="row">${name.replaceAll('_', ' ') || 'unknown'}</th>${pairCell(linkTo(count(payments), period, search), linkTo(count(old), period.past, search))}${pairCell(html`${percent(payments, all)}`, html`${percent(old, allBefore)}`)}</tr>`;
  };
  return card(
    'Declines by code',
    [['Code'], ...(['Payments', 'Share'] as const).map((name) => [name, 'number'] as const)],
    rows.slice(0, MAX_ROWS).map(row),
    restOf(rows.length) || 'The code of the last decline of each declined payment.',
  );
}

const restOf = (rows: number) => (rows > MAX_ROWS ? `The ${MAX_ROWS} most frequent of ${rows}.` : '');

function card(
  title: string,
  heads: readonly (readonly [name: string, style?: string])[],
  rows: readonly Html[],
  note: string,
): Html {
  if (rows.length === 0)
    return html`<section class="card"><h2>${title}</h2><p class="quiet">Nothing in this period.</p></section>`;
  const head = heads.map(([name, style = '']) => html`<th scope="col" class="${style}">${name}</th>`);
  return html`<section class="card"><h2>${title}</h2><div class="scroll" tabindex="0" role="region" aria-label="${title}"><table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table></div>${note !== '' && html`<p class="quiet">${note}</p>`}</section>`;
}
