import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { BankTransfer, Ticket } from '#gen/payments/v1/payment_method_pb.js';
import { type Payment, Payment_Status, Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import { isOurFault } from '#src/api/error-handler.ts';
import { toServiceError } from '#src/api/errors.ts';
import { type AddressShare, limitAtOnce } from '#src/api/limit-at-once.ts';
import { parseMoney } from '#src/money.ts';
import { callbackAddress } from '#src/payments/check/payer-return.ts';
import { localDetailOf } from '#src/payments/model/record.ts';
import { payerMustAct } from '#src/payments/model/state.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import type { Database } from '#src/store/engine/database.ts';
import { findAccount } from '#src/store/tables/accounts.ts';
import { findOwnTransaction } from '#src/store/tables/own-transaction.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { renderDeadEnd } from '#src/web/checkout-page.ts';
import { chooseLanguage, type Language } from '#src/web/checkout-texts.ts';
import { PAY_HEADERS, type PayState, type PayView, renderPayPage } from '#src/web/pay-page.ts';
import { drawQrCode } from '#src/web/payment-codes.ts';
import { amountOf, mountAsset } from './mount-checkout.ts';

/** Maximum number of pages and states served at once. */
const MAX_AT_ONCE = 100;

/** Dependencies of the pay page. */
export type PayPageDeps = { readonly database: Database };

type PayRequest = FastifyRequest<{ Params: { id: string } }>;

/**
 * Mounts the page that shows the payer of a local method how to pay, for whoever has the link. It reads the stored
 * payment, and calls no provider.
 */
export function mountPayPage(app: FastifyInstance, deps: PayPageDeps, share: AddressShare): void {
  app.register(async (pages) => {
    limitAtOnce(pages, MAX_AT_ONCE, share);
    pages.setErrorHandler((error, request, reply) => {
      const known = toServiceError(error);
      if (isOurFault(known)) request.log.error({ err: error }, 'serving a pay page failed');
      if (known.retryAfterS !== undefined) reply.header('retry-after', known.retryAfterS);
      const language = languageFor(request, undefined);
      return send(reply.code(known.status), renderDeadEnd('busy', language), language);
    });
    mountAsset(pages, 'pay.js', 'text/javascript; charset=utf-8');
    mountAsset(pages, 'pay.css', 'text/css; charset=utf-8');
    pages.get('/v1/payments/:id/pay', async (request: PayRequest, reply) => {
      const payment = await readPayment(deps, request.params.id);
      const language = languageFor(request, payment);
      const group = payment && localDetailOf(payment.paymentMethod?.paymentMethodDetail);
      const page = payment && providersPage(payment, group);
      if (page !== undefined)
        return reply
          .code(303)
          .headers({ ...PAY_HEADERS, location: page })
          .send();
      if (!payment || !group) {
        return send(reply.code(404), renderDeadEnd('unknown', language), language);
      }
      const account = await findAccount(deps.database, payment.accountId);
      const view = viewOf(payment, group, { language, payee: account?.displayName ?? '' });
      return send(reply, renderPayPage(view), language);
    });
    pages.get('/v1/payments/:id/pay/status', async (request: PayRequest, reply) => {
      const payment = await readPayment(deps, request.params.id);
      const group = payment && localDetailOf(payment.paymentMethod?.paymentMethodDetail);
      if (!payment || !group) return reply.code(404).headers(STATUS_HEADERS).send({ state: 'unknown' });
      return reply.headers(STATUS_HEADERS).send({ state: stateOf(payment, group) });
    });
    pages.get('/v1/payments/:id/pay/qr.svg', async (request: PayRequest, reply) => {
      const payment = await readPayment(deps, request.params.id);
      const group = payment && localDetailOf(payment.paymentMethod?.paymentMethodDetail);
      const isOpen = payment && group && stateOf(payment, group) === 'open';
      const isTransfer = isOpen && group.$typeName === 'payments.v1.BankTransfer';
      const text = isTransfer ? group.paymentInstruction : undefined;
      const svg = drawQrCode(text ?? '');
      const { 'content-type': _html, ...headers } = PAY_HEADERS;
      if (svg === undefined) return reply.code(404).headers(headers).send();
      return reply.headers(headers).type('image/svg+xml').send(svg);
    });
  });
}

const STATUS_HEADERS = { 'cache-control': 'no-store', 'x-robots-tag': 'noindex, nofollow' };

function send(reply: FastifyReply, html: string, language: Language): FastifyReply {
  return reply.headers({ ...PAY_HEADERS, 'content-language': language, vary: 'accept-language' }).send(html);
}

async function readPayment({ database }: PayPageDeps, id: string): Promise<Payment | undefined> {
  const own = isUuid(id) ? await findOwnTransaction(database, id) : undefined;
  const record = own && (await getPaymentRecord(database, own.accountId, id));
  return record && decodeRecord(record);
}

/** Returns the provider's page of a payment whose payer must act there; undefined if there is none. */
function providersPage(payment: Payment, group: BankTransfer | Ticket | undefined): string | undefined {
  if (!payerMustAct(payment)) return undefined;
  const kind = payment.paymentMethod?.paymentMethodDetail?.kind;
  const url = kind?.case === 'wallet' ? kind.value.redirectUrl : (group?.redirectUrl ?? '');
  return url === '' || url.endsWith(`/v1/payments/${payment.id}/pay`) ? undefined : url;
}

function stateOf({ status, subStatus }: Payment, group: BankTransfer | Ticket): PayState {
  const { READY_TO_PAY, PENDING, DECLINED, EXPIRED, ERROR, CANCELED } = Payment_Status;
  switch (status) {
    case READY_TO_PAY:
      return hasInstructions(group) ? 'open' : 'preparing';
    case PENDING:
      return subStatus === Payment_SubStatus_Value.IN_PROCESS ? 'confirming' : 'preparing';
    case EXPIRED:
      return 'expired';
    case CANCELED:
      return 'canceled';
    case DECLINED:
    case ERROR:
      return 'declined';
    default:
      return 'paid';
  }
}

function hasInstructions(group: BankTransfer | Ticket): boolean {
  if (group.$typeName === 'payments.v1.Ticket') {
    return Boolean(group.providerNumber || group.providerBarcode || group.documentUrl);
  }
  return Boolean(group.paymentInstruction || group.bankAccount || group.reference || group.documentUrl);
}

function viewOf(
  payment: Payment,
  group: BankTransfer | Ticket,
  { language, payee }: Pick<PayView, 'language' | 'payee'>,
): PayView {
  const { amount, country, merchantOrderId, description, transactions } = payment;
  const currency = amount?.currency ?? '';
  const formatted = (value: string | undefined) => {
    const money = value ? parseMoney(value, currency) : undefined;
    return money ? amountOf({ ...money, country }, language) : '';
  };
  const transfer = group.$typeName === 'payments.v1.BankTransfer' ? group : undefined;
  const ticket = group.$typeName === 'payments.v1.Ticket' ? group : undefined;
  return {
    ...{ language, payee, description, order: merchantOrderId, type: payment.paymentMethod?.type ?? '' },
    state: stateOf(payment, group),
    amount: formatted(amount?.value?.value),
    received: formatted(transactions?.providerData?.amountReceived),
    text: transfer?.paymentInstruction ?? '',
    number: ticket?.providerNumber ?? '',
    barcode: ticket?.providerBarcode ?? '',
    account: transfer?.bankAccount ?? '',
    bank: transfer?.bankName ?? '',
    beneficiary: transfer?.beneficiaryName ?? '',
    reference: transfer?.reference ?? '',
    document: group.documentUrl,
    until: group.expiresAt && timestampDate(group.expiresAt),
    zone: ZONES[country] ?? 'UTC',
    backUrl: callbackAddress(payment) ?? '',
    path: `/v1/payments/${payment.id}/pay`,
  };
}

/** The time zones in which payers of a country read when they can no longer pay, by ISO 3166-1 code. */
const ZONES: Readonly<Record<string, string>> = {
  AR: 'America/Argentina/Buenos_Aires',
  BR: 'America/Sao_Paulo',
  CL: 'America/Santiago',
  CO: 'America/Bogota',
  EC: 'America/Guayaquil',
  MX: 'America/Mexico_City',
  PE: 'America/Lima',
  UY: 'America/Montevideo',
};

/** Returns the payer's language: the one asked for, the browser's or the country's. */
function languageFor({ query, headers }: FastifyRequest, payment: Payment | undefined): Language {
  const ofCountry = payment?.country === 'BR' ? 'pt' : ZONES[payment?.country ?? ''] ? 'es' : 'en';
  return chooseLanguage((query as { lang?: unknown }).lang, headers['accept-language'], ofCountry);
}
