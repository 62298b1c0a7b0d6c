import { BANKS, type Instructions } from './code-methods.ts';
import { codeOf, otherAmount } from './code-states.ts';
import type { LedgerEntry, OrderDetails } from './ledger-entry.ts';
import { facts, formatForPayer, type Html, html, NOTHING, page } from './page.ts';

/** The page on which a tester pays a code, or lets it expire. @param outcome its page once it is no longer open. */
export function codePage(entry: LedgerEntry, order: OrderDetails, outcome: string): string {
  if (entry.status !== 'created') return outcome;
  const { method, bank, received, rules } = codeOf(entry);
  const money = (amount: number) => formatForPayer(amount, order.currency);
  const { instructions, expires_at } = JSON.parse(entry.answer) as {
    instructions: Instructions | null;
    expires_at: string;
  };
  return page(
    `Sandbox ${method}`,
    html`<h1>To pay with ${method}</h1>
    <p class="amount">${money(order.amount - received)}</p>
    ${facts({
      Received: received > 0 ? `${money(received)} of ${money(order.amount)}` : '',
      Bank: BANKS.find(({ id }) => id === bank)?.name ?? '',
      Description: order.description,
      'Merchant reference': order.reference,
      Code: instructions?.text ?? '',
      Number: instructions?.number ?? '',
      Account: instructions?.account ?? '',
      Reference: instructions?.reference ?? '',
      'Expires at': expires_at,
    })}
    ${form(entry.id, [
      ['pay', `Pay ${money(order.amount - received)}`],
      ...(rules.takesAnyAmount && received === 0
        ? ([['pay-half', `Pay only ${money(otherAmount(order.amount, 'underpaid'))}`]] as const)
        : []),
      ...(rules.takesAnyAmount
        ? ([['pay-more', `Pay ${money(otherAmount(order.amount, 'overpaid'))}, which is too much`]] as const)
        : []),
      ...(rules.isAtBank ? ([['decline', 'Let the bank decline']] as const) : []),
      ['expire', 'Let it expire'],
      ...(rules.isAtBank ? ([['leave', 'Leave without an answer']] as const) : []),
    ])}
    <p class="note">This is a sandbox: no money moves. Choose how the payment ends.</p>`,
  );
}

/** Renders the actions, each as a button with a label. */
function form(id: string, [first, ...others]: readonly (readonly [action: string, label: string])[]): Html {
  if (!first) return NOTHING;
  return html`<form method="post">
      <button formaction="${id}/${first[0]}">${first[1]}</button>
      ${others.map(([action, label]) => html`<button class="second" formaction="${id}/${action}">${label}</button>`)}
    </form>`;
}
