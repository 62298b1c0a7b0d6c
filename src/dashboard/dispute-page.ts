import { unknownId } from '#src/service-error.ts';
import { type Database, queriesOf } from '#src/store/engine/database.ts';
import { findAccount } from '#src/store/tables/accounts.ts';
import { recordAction } from '#src/store/tables/audit-log.ts';
import { getDispute, noteDispute, type StoredDispute } from '#src/store/tables/disputes.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { disputeAddress, disputedAmount, dueText } from './disputes-page.ts';
import { DASHBOARD, notice } from './frame.ts';
import { noteOf } from './note.ts';
import type { Session } from './session.ts';
import { badge, disputeBadge, facts, moneyText, shortened, time } from './show.ts';
import type { Page, Reply, Visit } from './visit.ts';

const MAX_NOTE = 1_000;

/** The page of one dispute: what the provider wants, and until when. */
export async function disputePage(database: Database, visit: Visit): Promise<Page> {
  const dispute = await disputeOf(database, visit);
  const account = await findAccount(database, dispute.accountId);
  const now = new Date();
  const content = html`<p class="quiet"><a href="${DASHBOARD}/disputes">Disputes</a> / <code>${dispute.id}</code></p>
${visit.query('did') === 'note' ? notice('done', 'The note was saved.') : NOTHING}
<div class="card"><div class="heading"><h1 class="amount">${disputedAmount(dispute)}</h1>
<p>${badge(dispute.stage)} ${disputeBadge(dispute.status)}</p></div>
<p>${wanted(dispute)}</p>
${facts([
  ['Respond by (UTC)', dueText(dispute, now)],
  ['Case at the provider', caseLink(dispute)],
  ['Reason', dispute.reason.toLowerCase().replaceAll('_', ' ')],
  ['Reason, as reported', dispute.rawReason],
  ['Scheme’s code, as reported', dispute.networkCode],
  ['Fee', feeOf(dispute)],
  ['Connection', dispute.connectionId],
  ['Account', shortened(account?.name ?? dispute.accountId, 80)],
  [
    'Payment',
    html`<a href="${DASHBOARD}/payments/${dispute.accountId}/${dispute.paymentId}">${dispute.paymentId}</a>`,
  ],
  ['Opened (UTC)', time(dispute.openedAt)],
  ['Updated (UTC)', time(dispute.updatedAt)],
  ['Closed (UTC)', dispute.closedAt && time(dispute.closedAt)],
])}</div>
${noteForm(dispute, visit.session)}`;
  return { title: 'Dispute', section: '/disputes', content };
}

/** Replaces the note of a dispute. The audit log has who did it, and not the text. */
export async function saveNote(database: Database, visit: Visit): Promise<Reply> {
  const { accountId, id } = await disputeOf(database, visit);
  const note = noteOf(visit, MAX_NOTE);
  await database.transaction(async (run) => {
    const queries = queriesOf(run);
    await recordAction(queries, { accountId, actor: visit.actor, action: 'note-dispute', subject: id });
    await noteDispute(queries, { accountId, id }, note, visit.actor);
  });
  return { goTo: `${disputeAddress({ accountId, id })}?did=note` };
}

/** @throws ServiceError DISPUTE_NOT_FOUND. */
async function disputeOf(database: Database, visit: Visit): Promise<StoredDispute> {
  const accountId = visit.part('account').toLowerCase();
  const id = visit.part('dispute').toLowerCase();
  const found = isUuid(accountId) && isUuid(id) ? await getDispute(database, accountId, id) : undefined;
  if (!found) throw unknownId('DISPUTE_NOT_FOUND', 'dispute');
  return found;
}

/** Says what the provider wants. */
function wanted({ status, stage }: StoredDispute): string {
  const isInquiry = stage === 'INQUIRY' || stage === 'PRE_DISPUTE';
  switch (status) {
    case 'NEEDS_RESPONSE':
      return isInquiry
        ? 'The provider asks about this payment and has taken no money. Answer it there, or refund the payment.'
        : 'Send evidence at the provider, or accept the dispute there. This service only shows it.';
    case 'UNDER_REVIEW':
      return 'The provider, the bank or the payer has to act. Nothing is asked of the merchant now.';
    case 'WON':
      return 'It was decided for the merchant. The bank may still contest the payment again.';
    default:
      return 'It has ended.';
  }
}

function caseLink({ link, reference }: StoredDispute): Html | undefined {
  const name = shortened(reference ?? 'open', 255);
  // The page is the provider's, which must not learn where the operator came from.
  if (link) return html`<a href="${link}" rel="noopener noreferrer" target="_blank">${name}</a>`;
  return reference === undefined ? undefined : html`<code>${name}</code>`;
}

function feeOf({ feeMinorUnits, feeCurrency }: StoredDispute): string | undefined {
  if (feeMinorUnits === undefined || feeCurrency === undefined) return undefined;
  return moneyText({ minorUnits: feeMinorUnits, currency: feeCurrency });
}

function noteForm(dispute: StoredDispute, session: Session): Html {
  const { note, notedBy } = dispute;
  const by = notedBy ? html`<p class="quiet">Last written by ${shortened(notedBy, 200)}</p>` : NOTHING;
  if (session.role !== 'operate') {
    return html`<section class="card"><h2>Note</h2><p>${note || 'None.'}</p>${by}</section>`;
  }
  return html`<section class="card"><h2>Note</h2><form class="stack" method="post" action="${disputeAddress(dispute)}/note"><input type="hidden" name="form_token" value="${session.formToken}">
<label for="note">For other operators. Without data of the payer.</label><textarea id="note" name="note" rows="4" maxlength="${String(MAX_NOTE)}">${note}</textarea>
<div><button>Save</button></div></form>${by}</section>`;
}
