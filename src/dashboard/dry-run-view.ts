import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import type { CatalogueDryRun, DryRunGroup } from '#gen/payments/v1/configuration_service_pb.js';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD } from './frame.ts';
import { routePicture, type ShownCatalogue } from './route-picture.ts';
import { count, money, shortened } from './show.ts';

/** Limit on the routes in a diagram, and on the groups of payments. */
const MAX_ROUTES = 30;
const MAX_GROUPS = 50;

/** The catalogue in force in this process, and the two catalogues that a dry run compares. */
type Compared = {
  readonly shown: ShownCatalogue;
  readonly before: Catalogue;
  readonly after: Catalogue;
};

/**
 * Renders a dry run: the routes by either catalogue with the payments that each connection loses or gets, and the
 * groups of payments that go elsewhere, whose numbers open samples.
 *
 * @param run undefined if none was asked for.
 */
export function dryRunView(run: CatalogueDryRun | undefined, { shown, before, after }: Compared): Html {
  const groups = run ? [...run.moved, ...run.refusedNow, ...run.takenNow] : [];
  const picture = (name: string, catalogue: Catalogue, notes: ReadonlyMap<string, string>) =>
    html`<section class="card"><h2>${name}</h2>${routePicture({ ...shown, catalogue }, MAX_ROUTES, notes)}</section>`;
  return html`${run ? summary(run, groups) : NOTHING}
${picture(
  'By the version in force',
  before,
  notes(groups, ({ from }) => from, '−'),
)}
${picture(
  'With this change',
  after,
  notes(groups, ({ to }) => to, '+'),
)}`;
}

function summary(run: CatalogueDryRun, groups: readonly DryRunGroup[]): Html {
  const { examined, unchanged, approximate, moved, refusedNow, takenNow } = run;
  const sum = (of: readonly DryRunGroup[]) => count(of.reduce((all, { payments }) => all + payments, 0));
  const told =
    examined === 0
      ? 'No payments are stored yet, so there is nothing to try the change on.'
      : `Of the last ${count(examined)} payments, ${sum(moved)} would go to another connection, ${sum(refusedNow)} would be refused, ${sum(takenNow)} would no longer be refused, and ${count(unchanged)} would go the same way.`;
  return html`<section class="card scroll" tabindex="0"><h2>Dry run</h2><p>${told} Circuits count as closed; nothing was sent to a provider.</p>
${approximate > 0 ? html`<p class="quiet">For ${count(approximate)} of them this is only likely: their personal data has been erased, or their route chooses by approval rate.</p>` : NOTHING}
${groups.length > 0 ? groupTable(groups) : NOTHING}</section>`;
}

function groupTable(groups: readonly DryRunGroup[]): Html {
  const name = (id: string) => (id === '' ? html`<em>refused</em>` : html`${shortened(id, 60)}`);
  const rows = groups.slice(0, MAX_GROUPS).map(({ from, to, payments, amounts, samples }) => {
    const sums = amounts.map(({ currency, value }) => money(value?.value, currency)).join(', ');
    const links = samples.map(
      (id) => html`<li><a href="${DASHBOARD}/payments/${id}"><code>${id}</code></a></li>`,
    );
    const told = `${count(payments)} ${payments === 1 ? 'payment' : 'payments'}`;
    return html`<tr><th scope="row">${name(from)} to ${name(to)}</th><td><details><summary>${told}</summary><ul class="samples">${links}</ul></details></td><td>${sums}</td></tr>`;
  });
  return html`<table class="lines"><thead><tr><th scope="col">From and to</th><th scope="col">Payments</th><th scope="col">Sums</th></tr></thead><tbody>${rows}</tbody></table>`;
}

/** Returns the number of payments that each connection loses or gets. */
function notes(
  groups: readonly DryRunGroup[],
  connectionOf: (group: DryRunGroup) => string,
  sign: string,
): ReadonlyMap<string, string> {
  const sums = new Map<string, number>();
  for (const group of groups) {
    const id = connectionOf(group);
    sums.set(id, (sums.get(id) ?? 0) + group.payments);
  }
  return new Map([...sums].map(([id, sum]) => [id, `${sign}${count(sum)}`]));
}
