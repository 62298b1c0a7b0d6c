import { changedEntry, currentAnswer, newEntry, newId } from './entries.ts';
import type { DisputeOrder, DisputeStep, LedgerEntry } from './ledger-entry.ts';
import { facts, formatForPayer, html, page } from './page.ts';

/** Time between the steps of a dispute. */
const STEP_MS = 2_000;
const DAY_MS = 86_400_000;
/** Time to respond, from the opening. */
const RESPONSE_MS = 10 * DAY_MS;
/** The provider's fee, in minor units of the payment's currency. */
export const DISPUTE_FEE = 1_500;

type Step = Omit<DisputeStep, 'atMs'>;

const INQUIRY: Step = { stage: 'inquiry', status: 'needs_response', moved: 0 };
const OPENED: Step = { stage: 'chargeback', status: 'needs_response', moved: 1 };
const REVIEWED: Step = { stage: 'chargeback', status: 'under_review', moved: 1 };
const WON: Step = { stage: 'chargeback', status: 'won', moved: 2 };

/** The steps of a dispute, by its ending. */
const STEPS: Readonly<Record<DisputeOrder['ending'], readonly Step[]>> = {
  open: [OPENED],
  inquiry: [INQUIRY],
  inquiry_closed: [INQUIRY, { ...INQUIRY, status: 'closed' }],
  escalated: [INQUIRY, OPENED],
  won: [OPENED, REVIEWED, WON],
  lost: [OPENED, REVIEWED, { ...REVIEWED, status: 'lost' }],
  accepted: [OPENED, { ...OPENED, status: 'accepted' }],
  expired: [OPENED, { ...OPENED, status: 'expired' }],
  lost_again: [OPENED, REVIEWED, WON, { ...WON, status: 'lost', moved: 3 }],
  pre_arbitration: [OPENED, REVIEWED, WON, { stage: 'pre_arbitration', status: 'needs_response', moved: 2 }],
};

/** Returns true for the name of an ending. */
export function isEnding(name: string): name is DisputeOrder['ending'] {
  return Object.hasOwn(STEPS, name);
}

/** Returns the dispute that a payment's call has requested, once money is taken; undefined if it has requested none. */
export function disputeOf(
  { id, details, sums, ...payment }: LedgerEntry,
  publicUrl: string,
): LedgerEntry | undefined {
  const { dispute } = details;
  if (!dispute || sums.captured === 0) return undefined;
  const openedMs = Date.now() + dispute.afterMs;
  const plan = STEPS[dispute.ending].map((step, n) => ({ ...step, atMs: openedMs + n * STEP_MS }));
  const [first] = plan;
  const { account } = JSON.parse(payment.answer);
  const { notificationUrl, notify } = details;
  const isTwo = payment.acquirer === 'TWO';
  const own = newId('dispute');
  return newEntry({
    ...{ kind: 'dispute', id: own },
    call: { idempotencyKey: `dispute-${id}`, acquirer: isTwo ? 'TWO' : 'ONE', account },
    ...{ parentId: id, status: SCHEDULED, amount: sums.captured, currency: payment.currency },
    fields: {
      ...{ payment: id, stage: null, reason: 'fraudulent', network_code: '10.4', funds_moved: 0 },
      ...{ fee: DISPUTE_FEE, respond_by: new Date(openedMs + RESPONSE_MS).toISOString() },
      url: `${publicUrl}/dispute/${own}`,
      updated_at: new Date().toISOString(),
    },
    ...(first && { due: { status: first.status, atMs: first.atMs } }),
    details: { plan, ...(notificationUrl && { notificationUrl }), ...(notify && { notify }) },
  });
}

/** Status of a dispute that is yet to be opened. */
export const SCHEDULED = 'scheduled';

/** Returns a dispute after its next step. */
export function afterStep(dispute: LedgerEntry): LedgerEntry {
  const [step, ...plan] = dispute.details.plan ?? [];
  if (!step) return changedEntry(dispute, { due: null });
  const [next] = plan;
  const { stage, status, moved } = step;
  return changedEntry(dispute, {
    ...{ status, due: next ? { status: next.status, atMs: next.atMs } : null },
    fields: { stage, funds_moved: moved, updated_at: new Date().toISOString() },
    details: { plan },
  });
}

/** The page of a dispute, as the dashboard of a real provider has one. */
export function disputePage(dispute: LedgerEntry): string {
  const { stage, reason, network_code, respond_by } = JSON.parse(currentAnswer(dispute));
  return page(
    'Sandbox dispute',
    html`<h1>Dispute of a payment</h1>
    <p class="amount">${formatForPayer(dispute.amount, dispute.currency)}</p>
    ${facts({
      Stage: stage ?? 'not opened yet',
      Status: dispute.status,
      Reason: `${reason} (${network_code})`,
      Payment: dispute.parentId ?? '',
      'Respond by': respond_by,
    })}
    <p class="note">This is a sandbox: it ends as the payment's description says.</p>`,
  );
}
