import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { toServiceError } from '#src/api/errors.ts';
import { type AddressShare, limitAtOnce } from '#src/api/limit-at-once.ts';
import { CHECKOUT_DIR } from '#src/config.ts';
import { type HostedCheckout, readHostedCheckout } from '#src/customers/hosted-checkout.ts';
import type { Offer } from '#src/customers/offered-methods.ts';
import { currencyDigits, formatMoney, type Money } from '#src/money.ts';
import { merchantAddress } from '#src/payments/check/payer-return.ts';
import type { PaymentDeps } from '#src/payments/create/create-payment.ts';
import { whyClosed } from '#src/payments/create/session-terms.ts';
import {
  CHECKOUT_HEADERS,
  type Checkout,
  type CheckoutMethod,
  renderCheckout,
  renderDeadEnd,
} from '#src/web/checkout-page.ts';
import { chooseLanguage, isLanguage, type Language } from '#src/web/checkout-texts.ts';
import { mountFile, staticFile } from '#src/web/static-file.ts';

/** Maximum number of pages rendered at once. */
const MAX_AT_ONCE = 100;

/**
 * Mounts the checkout page. It pays through the rpcs for browsers, with the account's public key.
 *
 * @param options.ofSandbox also shows sessions of the sandbox's accounts.
 */
export function mountCheckout(
  app: FastifyInstance,
  deps: PaymentDeps,
  { ofSandbox, share }: { readonly ofSandbox: boolean; readonly share: AddressShare },
): void {
  app.register(async (pages) => {
    limitAtOnce(pages, MAX_AT_ONCE, share);
    pages.setErrorHandler((error, request, reply) => {
      const { reason, status, retryAfterS } = toServiceError(error);
      if (reason === 'INTERNAL_ERROR') request.log.error({ err: error }, 'serving a checkout page failed');
      if (retryAfterS !== undefined) reply.header('retry-after', retryAfterS);
      return sendPage(request, reply, { status, html: renderDeadEnd('busy', languageOf(request)) });
    });
    mountAsset(pages, 'checkout.js', 'text/javascript; charset=utf-8');
    mountAsset(pages, 'checkout.css', 'text/css; charset=utf-8');
    pages.get<{ Params: { session: string } }>('/checkout/:session', async (request, reply) => {
      const hosted = await readHostedCheckout(deps, request.params.session, ofSandbox);
      return sendPage(request, reply, pageOf(hosted, languageOf(request)));
    });
  });
}

/**
 * Returns the path of the checkout page that sent the payer to the provider, in the payer's language. The page has set
 * a cookie to that language, or to `1`.
 *
 * @returns undefined if the payer did not come from the page.
 */
export function checkoutPath({ checkout }: Payment, cookies: string | undefined): string | undefined {
  const [, left] = /(?:^|;\s*)checkout_page=(1|[a-z]{2})(?:;|$)/.exec(cookies ?? '') ?? [];
  if (left === undefined || !checkout?.session) return undefined;
  return `/checkout/${checkout.session}${isLanguage(left) ? `?lang=${left}` : ''}`;
}

/** Mounts a file of `web/assets`. */
export function mountAsset(app: FastifyInstance, name: string, type: string): void {
  const file = join(CHECKOUT_DIR, 'src/web/assets', name);
  mountFile(app, `/checkout/assets/${name}`, () => staticFile(type, readFileSync(file)));
}

type Rendered = { readonly status: number; readonly html: string };

function pageOf(found: HostedCheckout | undefined, language: Language): Rendered {
  if (!found) return { status: 404, html: renderDeadEnd('unknown', language) };
  const { session } = found;
  if (!session.used && whyClosed(session) !== undefined) {
    return { status: 410, html: renderDeadEnd('expired', language, backUrlOf(session)) };
  }
  return { status: 200, html: renderCheckout(checkoutOf(found, language)) };
}

function sendPage(request: FastifyRequest, reply: FastifyReply, { status, html }: Rendered): FastifyReply {
  const language = { 'content-language': languageOf(request), vary: 'accept-language' };
  return reply
    .code(status)
    .headers({ ...CHECKOUT_HEADERS, ...language })
    .send(html);
}

function checkoutOf(hosted: HostedCheckout, language: Language): Checkout {
  const { session, publicKey, displayName, offers } = hosted;
  return {
    language,
    session: session.id,
    publicKey,
    payee: displayName,
    description: session.paymentDescription,
    order: session.merchantOrderId,
    amount: amountOf(session, language),
    shown: { currency: session.currency, value: formatMoney(session) },
    methods: offers.map(methodOf),
    maxInstallments: session.maxInstallments,
    canSave: session.customerId !== undefined,
    isOpen: !session.used,
    backUrl: backUrlOf(session),
    hasPayment: session.paymentId !== undefined,
  };
}

function methodOf({ method, local }: Offer): CheckoutMethod {
  const { type, category, name, vaultedToken, installments, banks } = method;
  return {
    type,
    isCard: category === 'CARD',
    // A stored card's name begins with its brand in the API's spelling.
    name: vaultedToken ? name.replaceAll('_', ' ') : name,
    vaultedToken,
    installments,
    local: local && {
      needs: local.needs,
      documents: local.documents ?? [],
      banks,
      canClose: local.close,
    },
  };
}

function backUrlOf({ callbackUrl }: HostedCheckout['session']): string {
  return merchantAddress(callbackUrl)?.href ?? '';
}

/** Returns the payer's language. */
export function languageOf({ query, headers }: FastifyRequest): Language {
  return chooseLanguage((query as { lang?: unknown }).lang, headers['accept-language']);
}

/**
 * Formats the amount for a language and country, with the currency's decimal places: "$55.75", "US$ 55,75", "JPY
 * 1,200".
 */
export function amountOf(
  { country, currency, minorUnits }: Money & { readonly country: string },
  language: Language,
): string {
  const digits = currencyDigits(currency) ?? 0;
  const format = new Intl.NumberFormat(`${language}-${country}`, {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return format.format(formatMoney({ minorUnits, currency }) as Intl.StringNumericLiteral);
}
