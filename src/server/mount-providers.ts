import type { FastifyInstance, FastifyReply } from 'fastify';
import { type Payment, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { isOurFault, sendError } from '#src/api/error-handler.ts';
import { toServiceError } from '#src/api/errors.ts';
import { type AddressShare, limitAtOnce } from '#src/api/limit-at-once.ts';
import { addressGroup } from '#src/api/shares.ts';
import type { RawNotification } from '#src/connectors/port/connector.ts';
import { type EnrollmentReturnDeps, returnFromEnrollment } from '#src/customers/follow-enrollments.ts';
import { parseMoney } from '#src/money.ts';
import { type ReceiveDeps, receiveNotification, requireReader } from '#src/payments/check/news.ts';
import { callbackAddress, type ReturnDeps, returnPayer } from '#src/payments/check/payer-return.ts';
import { CHECKOUT_TEXTS, type Language } from '#src/web/checkout-texts.ts';
import { PAGE_HEADERS, type Page, renderPage } from '#src/web/page.ts';
import type { CheckoutTexts } from '#src/web/texts/english.ts';
import type { InFlight } from './in-flight.ts';
import { headerOf } from './mount-api.ts';
import { amountOf, checkoutPath, languageOf } from './mount-checkout.ts';

/** Dependencies of the routes for providers' notifications and returning payers. */
export type ProviderRoutes = {
  readonly receive: ReceiveDeps;
  readonly payer: ReturnDeps & EnrollmentReturnDeps;
  /**
   * Tracks work. A return may be the only proof of the payer's consent, so no connection closes during a return, even
   * if the payer has disconnected.
   */
  readonly track: InFlight['track'];
  /** true if payers who paid on the checkout page return to it. */
  readonly checkoutPage: boolean;
  readonly share: AddressShare;
};

const NOTIFICATION_LIMIT_BYTES = 256 * 1024;
/**
 * Maximum number of notifications in progress at once, and of returns. Any more are refused; providers resend refused
 * notifications.
 */
const MAX_AT_ONCE = 100;

/** Mounts the routes for providers' notifications and returning payers. Neither has account keys. */
export function mountProviders(app: FastifyInstance, routes: ProviderRoutes): void {
  app.register(async (raw) => mountNotifications(raw, routes));
  app.register(async (returns) => mountReturns(returns, routes));
}

function mountNotifications(app: FastifyInstance, { receive, share }: ProviderRoutes): void {
  limitAtOnce(app, MAX_AT_ONCE, share);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    '*',
    { parseAs: 'buffer', bodyLimit: NOTIFICATION_LIMIT_BYTES },
    (_request, body, done) => done(null, body),
  );
  app.post<{ Params: { connection: string } }>('/v1/providers/:connection/notifications', {
    // Before the body: nobody is to send us bodies that nobody reads.
    onRequest: async (request) => void requireReader(receive, request.params.connection),
    handler: async (request, reply) => {
      const notification: RawNotification = {
        header: headerOf(request),
        query: queryOf(request.url),
        body: (request.body as Uint8Array | undefined) ?? new Uint8Array(),
        from: addressGroup(share.clientAddress(request)),
      };
      const { connection } = request.params;
      const acknowledgement = await receiveNotification(receive, connection, notification);
      return reply.code(200).type('text/plain; charset=utf-8').send(acknowledgement);
    },
  });
}

/** The paths by which payers come back; true for those who left the provider's page without paying. */
const PAYERS_WAYS_BACK = [
  ['/v1/payments/:id/return', false],
  ['/v1/payments/:id/return/canceled', true],
] as const;

function mountReturns(app: FastifyInstance, routes: ProviderRoutes): void {
  const { payer } = routes;
  limitAtOnce(app, MAX_AT_ONCE, routes.share);
  app.setErrorHandler((error, request, reply) => {
    if (!request.headers.accept?.includes('text/html')) return sendError(error, request, reply);
    const known = toServiceError(error);
    const { status, retryAfterS } = known;
    if (isOurFault(known)) request.log.error({ err: error }, "handling a payer's return failed");
    if (retryAfterS !== undefined) reply.header('retry-after', retryAfterS);
    return sendPage(reply.code(status), failurePage(status, languageOf(request)));
  });
  for (const [path, hasCanceled] of PAYERS_WAYS_BACK) {
    app.get<{ Params: { id: string } }>(path, async (request, reply) => {
      const returned = returnPayer(payer, request.params.id, queryOf(request.url), { hasCanceled });
      const payment = await routes.track(returned);
      const page = routes.checkoutPage ? checkoutPath(payment, request.headers.cookie) : undefined;
      return sendBack(reply, page ?? callbackAddress(payment), outcomePage(payment, languageOf(request)));
    });
  }
  app.get<{ Params: { id: string } }>('/v1/enrollments/:id/return', async (request, reply) => {
    const returned = returnFromEnrollment(payer, request.params.id);
    const { status, address } = await routes.track(returned);
    return sendBack(reply, address, enrollmentPage(status, languageOf(request)));
  });
}

/** Redirects a payer to the merchant's URL or, if there is none, sends the page that shows the outcome. */
function sendBack(reply: FastifyReply, address: string | undefined, page: Page): FastifyReply {
  if (address === undefined) return sendPage(reply, page);
  return reply.code(303).headers({ location: address, 'referrer-policy': 'no-referrer' }).send();
}

function sendPage(reply: FastifyReply, page: Page): FastifyReply {
  return reply
    .headers({ ...PAGE_HEADERS, 'content-language': page.language, vary: 'accept-language' })
    .send(renderPage(page));
}

/** Returns the query string, without the question mark. */
function queryOf(url: string): string {
  const start = url.indexOf('?');
  return start < 0 ? '' : url.slice(start + 1);
}

/** Builds the page for a payer whose payment cannot be shown. */
function failurePage(status: number, language: Language): Page {
  const texts = CHECKOUT_TEXTS[language];
  const [title, text] =
    status === 404 ? [texts.unknownTitle, texts.unknownText] : [texts.busyTitle, texts.busyText];
  return { language, title, text, amount: '', small: '' };
}

/** Builds the page for a payer who enrolled a wallet and whose merchant gave no URL to return to. */
function enrollmentPage(status: string, language: Language): Page {
  const texts = CHECKOUT_TEXTS[language].outcome;
  const ends: Readonly<Record<string, readonly string[]>> = {
    ENROLLED: texts.added,
    READY_TO_ENROLL: texts.almostAdded,
  };
  const [title = '', text = ''] = ends[status] ?? texts.notAdded;
  return { language, title, text, amount: '', small: '' };
}

/** Response code of a payment that the payer canceled at the provider. */
const CANCELED_BY_PAYER = 'CANCELED_BY_PAYER';

/** Builds the page for a payer whose merchant gave no URL to return to. */
function outcomePage(payment: Payment, language: Language): Page {
  const texts = CHECKOUT_TEXTS[language];
  const [title = '', text = ''] = texts.outcome[outcomeOf(payment)];
  const { currency = '', value } = payment.amount ?? {};
  const money = parseMoney(value?.value ?? '', currency);
  const amount = money ? amountOf({ ...money, country: payment.country }, language) : '';
  return { language, title, text, amount, small: `${texts.title} ${payment.id}` };
}

function outcomeOf({ status, transactions }: Payment): keyof CheckoutTexts['outcome'] {
  const { READY_TO_PAY, PENDING, SUCCEEDED, VERIFIED, DECLINED, EXPIRED, ERROR, CANCELED } = Payment_Status;
  switch (status) {
    case SUCCEEDED:
    case VERIFIED:
      return 'complete';
    case DECLINED:
      return transactions?.responseCode === CANCELED_BY_PAYER ? 'canceled' : 'declined';
    case EXPIRED:
    case CANCELED:
    case ERROR:
      return 'notMade';
    case READY_TO_PAY:
    case PENDING:
      return 'inProgress';
    default:
      return 'closed';
  }
}
