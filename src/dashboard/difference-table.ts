import { NIL_UUID } from '#src/store/engine/rows.ts';
import type { StoredDifference } from '#src/store/tables/settlement-differences.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD } from './frame.ts';
import { payoutAddress } from './payout-page.ts';
import type { Session } from './session.ts';
import { type SettlementFilter, settlementAddress } from './settlement-filter.ts';
import { badge, shortened, time } from './show.ts';

/** Maximum length of a note about a difference. */
export const MAX_DIFFERENCE_NOTE = 900;

/** An operator's decision on a difference. */
export type DifferenceDecision = 'resolve' | 'reopen';

/** Renders differences, with the form that resolves each or opens it again. */
export function differenceTable(
  differences: readonly StoredDifference[],
  filter: SettlementFilter,
  session: Session,
): Html {
  const rows = differences.map(
    (one, i) =>
      html`<tr><td class="nowrap">${time(one.openedAt)}</td><td>${badge(one.kind)}</td><th scope="row" class="long">${shortened(one.detail, 500)}<br><span class="quiet">${about(one)}</span></th><td>${shortened(one.connectionId, 60)}</td><td>${resolution(one)}${session.role === 'operate' ? form(one, i, { filter, session }) : NOTHING}</td></tr>`,
  );
  return html`<div class="card scroll" tabindex="0"><table class="lines"><thead><tr><th scope="col">Found (UTC)</th><th scope="col">Difference</th><th scope="col">What differs</th><th scope="col">Connection</th><th scope="col">Work on it</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

/** Links to the payment or payout of a difference; otherwise names its line. */
function about({
  accountId,
  paymentId,
  subject,
  kind,
  connectionIdentity: identity,
}: StoredDifference): Html {
  if (paymentId !== undefined && accountId !== NIL_UUID) {
    return html`Payment <a href="${DASHBOARD}/payments/${accountId}/${paymentId}"><code>${paymentId}</code></a>`;
  }
  if (kind !== 'payout_unbalanced') return html`Line <code>${shortened(subject, 300)}</code>`;
  // The subject ends with the currency.
  const reference = subject.slice(0, -4);
  return html`Payout <a href="${payoutAddress({ identity, reference })}"><code>${shortened(subject, 300)}</code></a>`;
}

function resolution({ resolvedAt, resolvedBy, note }: StoredDifference): Html {
  const by =
    resolvedAt &&
    html`<p class="quiet">Resolved ${time(resolvedAt)} by ${shortened(resolvedBy ?? '', 200)}</p>`;
  return html`${note ? html`<p class="long">${note}</p>` : NOTHING}${by ?? NOTHING}`;
}

function form(
  one: StoredDifference,
  i: number,
  { filter, session }: { readonly filter: SettlementFilter; readonly session: Session },
): Html {
  const [decision, name]: readonly [DifferenceDecision, string] = one.resolvedAt
    ? ['reopen', 'Open again']
    : ['resolve', 'Resolve'];
  const address = settlementAddress(filter).replace('/settlement', `/settlement/${decision}`);
  const hidden = Object.entries({
    form_token: session.formToken,
    account: one.accountId,
    identity: one.connectionIdentity,
    difference: one.kind,
    subject: one.subject,
  });
  return html`<details><summary>${name}…</summary><form class="stack" method="post" action="${address}">${hidden.map(([field, value]) => html`<input type="hidden" name="${field}" value="${value}">`)}
<div><label for="note-${i}">Why? Without data of the payer.</label><textarea id="note-${i}" name="note" rows="3" maxlength="${MAX_DIFFERENCE_NOTE}" required></textarea></div>
<div><button>${name}</button></div></form></details>`;
}
