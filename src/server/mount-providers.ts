import type { FastifyInstance, FastifyReply } from 'fastify';
import { type Payment, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { limitAtOnce } from '#src/api/limit-at-once.ts';
import type { RawNotification } from '#src/connectors/connector.ts';
import { type FollowDeps, returnFromEnrollment } from '#src/customers/follow-enrollments.ts';
import { type ReceiveDeps, receiveNotification } from '#src/notifications/receive-notification.ts';
import { createLookUpTurns } from '#src/payments/look-up-turns.ts';
import { callbackAddress, type ReturnDeps, returnPayer } from '#src/payments/payer-return.ts';
import { PAGE_HEADERS, type Page, renderPage } from '#src/web/page.ts';
import { headerOf } from './mount-api.ts';
import { checkoutPath } from './mount-checkout.ts';

/** Dependencies of the routes for providers' notifications and returning payers. */
export type ProviderRoutes = {
  readonly receive: ReceiveDeps;
  readonly payer: Omit<ReturnDeps, 'turns'> & FollowDeps;
  /** true: payers who paid on the checkout page return to it. */
  readonly checkoutPage: boolean;
  /** Processes stored notifications at once. */
  readonly wake: () => void;
};

const NOTIFICATION_LIMIT_BYTES = 256 * 1024;
/** Notifications and returns at once. One beyond that is refused; a provider sends its notification again. */
const MAX_AT_ONCE = 100;

/** Mounts the routes to which providers send notifications and payers. Neither carries an account's keys. */
export function mountProviders(app: FastifyInstance, routes: ProviderRoutes): void {
  const payer = { ...routes.payer, turns: createLookUpTurns() };
  app.register(async (raw) => {
    limitAtOnce(raw, MAX_AT_ONCE);
    raw.removeAllContentTypeParsers();
    raw.addContentTypeParser(
      '*',
      { parseAs: 'buffer', bodyLimit: NOTIFICATION_LIMIT_BYTES },
      (_request, body, done) => done(null, body),
    );

    raw.post<{ Params: { connection: string } }>(
      '/v1/providers/:connection/notifications',
      async (request, reply) => {
        const notification: RawNotification = {
          header: headerOf(request),
          query: queryOf(request.url),
          body: (request.body as Uint8Array | undefined) ?? new Uint8Array(),
        };
        const acknowledgement = await receiveNotification(
          routes.receive,
          request.params.connection,
          notification,
        );
        routes.wake();
        return reply.code(200).type('text/plain; charset=utf-8').send(acknowledgement);
      },
    );

    raw.get<{ Params: { id: string } }>('/v1/payments/:id/return', async (request, reply) => {
      const payment = await returnPayer(payer, request.params.id, queryOf(request.url));
      const page = routes.checkoutPage ? checkoutPath(payment, request.headers.cookie) : undefined;
      return sendBack(reply, page ?? callbackAddress(payment), outcomePage(payment));
    });
    raw.get<{ Params: { id: string } }>('/v1/enrollments/:id/return', async (request, reply) => {
      const { status, address } = await returnFromEnrollment(payer, request.params.id, payer.turns);
      return sendBack(reply, address, enrollmentPage(status));
    });
  });
}

/** Sends a payer to the address of their merchant or, without one, the page that tells the outcome. */
function sendBack(reply: FastifyReply, address: string | undefined, page: Page): FastifyReply {
  if (address === undefined) return reply.code(200).headers(PAGE_HEADERS).send(renderPage(page));
  return reply.code(303).headers({ location: address, 'referrer-policy': 'no-referrer' }).send();
}

/** Returns the query string, without the question mark. */
function queryOf(url: string): string {
  const start = url.indexOf('?');
  return start < 0 ? '' : url.slice(start + 1);
}

/** Makes the page for a payer who enrolled a wallet and whose merchant has no page to return to. */
function enrollmentPage(status: string): Page {
  const shared = { amount: '', small: '' };
  switch (status) {
    case 'ENROLLED':
      return { ...shared, title: 'Wallet added', text: 'You can close this page.' };
    case 'READY_TO_ENROLL':
      return {
        ...shared,
        title: 'Almost done',
        text: 'Your wallet is being confirmed. The shop will tell you.',
      };
    default:
      return { ...shared, title: 'Wallet not added', text: 'Nothing was charged. Start again in the shop.' };
  }
}

/** Makes the page for a payer whose merchant has no page to return to. */
function outcomePage(payment: Payment): Page {
  const { currency = '', value } = payment.amount ?? {};
  const shared = { amount: `${value?.value ?? ''} ${currency}`, small: `Payment ${payment.id}` };
  const { READY_TO_PAY, PENDING, SUCCEEDED, VERIFIED, DECLINED, EXPIRED, ERROR, CANCELED } = Payment_Status;
  switch (payment.status) {
    case SUCCEEDED:
    case VERIFIED:
      return { ...shared, title: 'Payment complete', text: 'You can close this page.' };
    case DECLINED:
      return {
        ...shared,
        title: 'Payment declined',
        text: 'Nothing was charged. You can try again with another method.',
      };
    case EXPIRED:
    case CANCELED:
    case ERROR:
      return { ...shared, title: 'Payment not made', text: 'Nothing was charged. Start again in the shop.' };
    case READY_TO_PAY:
    case PENDING:
      return {
        ...shared,
        title: 'Payment in progress',
        text: 'Your payment is being confirmed. The shop will tell you the outcome.',
      };
    default:
      return { ...shared, title: 'Payment closed', text: 'There is nothing left to pay here.' };
  }
}
