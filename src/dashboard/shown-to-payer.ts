import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { BankTransfer, Ticket } from '#gen/payments/v1/payment_method_pb.js';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { amountReceivedOf, localDetailOf } from '#src/payments/model/record.ts';
import type { StoredStory } from '#src/store/tables/payment-story.ts';
import { type Html, type HtmlValue, html, NOTHING } from '#src/web/html.ts';
import { facts, money, shortened, time } from './show.ts';

/**
 * Renders what a payer was shown and until when they can pay: a code, an account, a voucher, or a page. Nothing for a
 * payment whose payer does not act.
 */
export function shownToPayer(payment: Payment, { transactions: states }: StoredStory): Html {
  const kind = payment.paymentMethod?.paymentMethodDetail?.kind;
  const [first] = payment.transactionsHistory;
  if (!kind?.case || !first) return NOTHING;
  const local = localDetailOf(payment.paymentMethod?.paymentMethodDetail);
  const { redirectUrl } = kind.value;
  const expiresAt = local?.expiresAt;
  // The last attempt's row; the history also has operations.
  const dueAt = states.findLast(({ methodKind }) => methodKind !== undefined)?.payerDueAt;
  if (!local && !(redirectUrl && dueAt)) return NOTHING;
  const received = amountReceivedOf(payment);
  return html`<section class="card"><h2>Shown to the payer</h2>${facts([
    ...(kind.case === 'bankTransfer' ? transferRows(kind.value) : []),
    ...(kind.case === 'ticket' ? ticketRows(kind.value) : []),
    ['Provider’s document', local && link(local.documentUrl)],
    ['Page', link(redirectUrl)],
    ['Expires (UTC)', expiresAt && time(expiresAt)],
    // Where the provider gave no end of its own, it is the end that was asked for.
    ['Waits for the payer until (UTC)', dueAt && !isSame(dueAt, expiresAt) && time(dueAt)],
    [
      'Received',
      received &&
        html`<strong>${money(received, payment.amount?.currency ?? '')}</strong>, another amount than requested`,
    ],
  ])}</section>`;
}

type Row = readonly [name: string, value: HtmlValue];

function transferRows(transfer: BankTransfer): Row[] {
  return [
    ['Text to copy', transfer.paymentInstruction && code(transfer.paymentInstruction)],
    ['QR code', link(transfer.providerImage)],
    ['Account', transfer.bankAccount && code(transfer.bankAccount)],
    ['Bank', transfer.bankName],
    ['Beneficiary', transfer.beneficiaryName],
    ['Reference', transfer.reference && code(transfer.reference)],
    ['Payer’s bank', [transfer.bankId, transfer.accountType?.toLowerCase()].filter(Boolean).join(', ')],
  ];
}

function ticketRows({ providerNumber, providerBarcode }: Ticket): Row[] {
  return [
    ['Digits', providerNumber && code(providerNumber)],
    ['Barcode', providerBarcode && providerBarcode !== providerNumber && code(providerBarcode)],
  ];
}

/** Returns true for two times within a second: the database's has microseconds, and the provider's may have none. */
function isSame(one: Date, other: Timestamp | undefined): boolean {
  return other !== undefined && Math.abs(one.getTime() - timestampMs(other)) < 1_000;
}

const code = (text: string) => html`<code>${shortened(text, 1_000)}</code>`;

/** Links to a page, which a provider may have named: nothing but HTTP is followed. */
function link(url: string | undefined): HtmlValue {
  if (!url) return undefined;
  const shown = shortened(url, 200);
  return /^https?:\/\//.test(url)
    ? html`<a href="${url}" rel="noreferrer" target="_blank">${shown}</a>`
    : shown;
}
