import type { JsonObject } from '@bufbuild/protobuf';
import { createCodes } from './fake-codes.ts';
import { addMetadata, checkParameters as check } from './fake-parameters.ts';
import {
  type Answer,
  type CardBehaviour,
  type FakeIntent,
  invalid,
  newId,
  StripeError,
  TEST_CARDS,
} from './fake-wire.ts';

/** The fake's state and its changes, without HTTP. */
export type FakeLedger = ReturnType<typeof createLedger>;

const SEVEN_DAYS_MS = 7 * 24 * 3_600_000;
/** Opens an empty ledger. */
export function createLedger(nowMs: () => number, pageUrl: (intentId: string) => string) {
  const cards = new Map<string, CardBehaviour>(TEST_CARDS);
  const methods = new Map<string, CardBehaviour>();
  /** The wallets of payment methods. */
  const wallets = new Map<string, JsonObject>();
  const intents = new Map<string, FakeIntent>();
  const charges = new Map<string, JsonObject>();
  const refunds = new Map<string, JsonObject>();
  const codes = createCodes({ intents, charges, nowMs });
  /** The tokens of wallets, each used at most once. */
  const tokens = new Map<string, { readonly wallet: string; readonly number: string }>();
  /** The status of a new refund, and whether the intent's object lock is held. */
  const mode = { refundStatus: 'succeeded', locked: false };

  function createMethod(fields: JsonObject): Answer {
    check('method', fields);
    const card = cardOf(fields.card as JsonObject | undefined);
    const behaviour = cards.get(String(card.number)) ?? { kind: 'approve' };
    if (behaviour.kind === 'decline' && behaviour.early) {
      const { code } = behaviour;
      throw new StripeError(
        402,
        { type: 'card_error', code, message: `Your card: ${code}`, param: 'number' },
        true,
      );
    }
    const id = newId('pm');
    methods.set(id, behaviour);
    if (card.wallet) wallets.set(id, { type: String(card.wallet) });
    const last4 = String(card.number).slice(-4);
    return ok({
      id,
      object: 'payment_method',
      type: 'card',
      card: { brand: 'visa', last4 },
      livemode: false,
    });
  }

  function cardOf(card: JsonObject | undefined): JsonObject {
    const id = String(card?.token);
    // The test token of a card can be used again.
    if (id === 'tok_visa') return { number: '4242424242424242' };
    const token = tokens.get(id);
    if (card?.token && !token)
      throw invalid('No such token', { code: 'resource_missing', param: 'card[token]' });
    // A token makes one payment method.
    tokens.delete(id);
    if (token) return { ...token };
    if (!card?.number || !card.exp_month || !card.exp_year) throw invalid('missing card', { param: 'card' });
    return card;
  }

  /** Makes the token of a wallet, as the wallet itself or Apple Pay's request does. */
  function createToken(wallet: 'google_pay' | 'apple_pay', number = '4242424242424242'): JsonObject {
    const id = newId('tok');
    tokens.set(id, { wallet, number });
    return { id, object: 'token', type: 'card', used: false, livemode: false };
  }

  function createIntent(fields: JsonObject): Answer {
    check('create', fields);
    const amount = Number(fields.amount);
    const currency = String(fields.currency ?? '');
    if (!Number.isInteger(amount) || amount < 1) throw invalid('amount', { code: 'amount_too_small' });
    if (amount > 999_999_999_999) throw invalid('amount', { code: 'amount_too_large' });
    if (!/^[a-z]{3}$/.test(currency)) throw invalid('currency', { code: 'invalid_currency' });
    const multiple = { isk: 100, ugx: 100, bhd: 10, jod: 10, kwd: 10, omr: 10, tnd: 10 }[currency] ?? 1;
    if (amount % multiple !== 0) throw invalid('amount', { code: 'parameter_invalid_integer' });
    const code = fields.confirm === 'true' ? codes.checkCode(fields) : undefined;
    const id = newId('pi');
    const intent: FakeIntent = {
      id,
      object: 'payment_intent',
      status: 'requires_payment_method',
      amount,
      amount_capturable: 0,
      amount_received: 0,
      currency,
      capture_method: fields.capture_method ?? 'automatic',
      confirmation_method: 'automatic',
      client_secret: `${id}_secret_${newId('x')}`,
      description: fields.description ?? null,
      metadata: (fields.metadata as JsonObject) ?? {},
      statement_descriptor_suffix: fields.statement_descriptor_suffix ?? null,
      payment_method_types: fields.payment_method_types ?? ['card', 'link'],
      payment_method: null,
      customer: fields.customer ?? null,
      latest_charge: null,
      last_payment_error: null,
      next_action: null,
      cancellation_reason: null,
      canceled_at: null,
      created: Math.floor(nowMs() / 1000),
      livemode: false,
    };
    intents.set(id, intent);
    code?.(intent);
    return ok(told(intent, fields));
  }

  function confirm(id: string, fields: JsonObject): Answer {
    check('confirm', fields);
    const intent = locked(id);
    if (!['requires_payment_method', 'requires_confirmation'].includes(intent.status))
      throw unexpected(intent);
    const behaviour = methods.get(String(fields.payment_method));
    if (!behaviour) throw invalid('No such PaymentMethod', { code: 'resource_missing' });
    const options = (fields.payment_method_options as JsonObject | undefined)?.card as JsonObject | undefined;
    Object.assign(intent, { payment_method: fields.payment_method, last_payment_error: null });
    const wanted = options?.request_three_d_secure === 'any' && behaviour.kind === 'approve';
    const asked: CardBehaviour = wanted ? { kind: 'challenge', next: behaviour } : behaviour;
    if (asked.kind === 'challenge' && !options?.three_d_secure) {
      if (!fields.return_url) {
        intent.next_action = { type: 'use_stripe_sdk', use_stripe_sdk: {} };
      } else {
        const redirect = { url: pageUrl(id), return_url: fields.return_url ?? null };
        intent.next_action = { type: 'redirect_to_url', redirect_to_url: redirect };
      }
      intent.status = 'requires_action';
      return ok(told(intent, fields));
    }
    return charge(intent, asked.kind === 'challenge' ? asked.next : asked, fields);
  }

  function charge(intent: FakeIntent, behaviour: CardBehaviour, fields: JsonObject): Answer {
    intent.next_action = null;
    if (behaviour.kind === 'processing') {
      intent.status = 'processing';
      return ok(told(intent, fields));
    }
    const manual = intent.capture_method === 'manual';
    const failed = behaviour.kind === 'decline';
    const made: JsonObject = {
      id: newId('ch'),
      object: 'charge',
      amount: intent.amount,
      amount_captured: failed || manual ? 0 : intent.amount,
      amount_refunded: 0,
      captured: !failed && !manual,
      currency: intent.currency,
      payment_intent: intent.id,
      metadata: { ...intent.metadata },
      status: failed ? 'failed' : 'succeeded',
      outcome: {
        type: failed ? (behaviour.blocked ? 'blocked' : 'issuer_declined') : 'authorized',
        network_status: failed ? 'declined_by_network' : 'approved_by_network',
        seller_message: failed ? 'The bank did not approve.' : 'Payment complete.',
      },
      payment_method_details: {
        type: 'card',
        card: {
          ...{ brand: 'visa', last4: '4242', funding: 'credit', exp_month: 12, exp_year: 2030 },
          ...{ authorization_code: '123456', network_transaction_id: 'nti-1' },
          wallet: wallets.get(String(intent.payment_method)) ?? null,
        },
      },
    };
    charges.set(made.id as string, made);
    intent.latest_charge = made.id as string;
    if (failed) throw decline(intent, behaviour.code, behaviour.declineCode);
    intent.status = manual ? 'requires_capture' : 'succeeded';
    intent[manual ? 'amount_capturable' : 'amount_received'] = intent.amount;
    intent.authorized_at = nowMs();
    return ok(told(intent, fields));
  }

  function decline(intent: FakeIntent, code: string, declineCode: string | undefined): StripeError {
    const error: JsonObject = {
      type: 'card_error',
      code,
      message: 'Your card was declined.',
      doc_url: 'https://x',
    };
    if (declineCode !== undefined) error.decline_code = declineCode;
    if (intent.latest_charge) error.charge = intent.latest_charge;
    intent.status = 'requires_payment_method';
    intent.payment_method = null;
    intent.last_payment_error = { ...error };
    return new StripeError(402, { ...error, payment_intent: told(intent, {}) }, true);
  }

  /** The payer's choice on the issuer's page. */
  function authenticate(id: string, passes: boolean): void {
    const intent = found(id);
    if (intent.status !== 'requires_action') return;
    const method = methods.get(String(intent.payment_method));
    const next: CardBehaviour = method?.kind === 'challenge' ? method.next : { kind: 'approve' };
    try {
      if (passes) charge(intent, next, {});
      else decline(intent, 'payment_intent_authentication_failure', undefined);
      if (!passes) intent.next_action = null;
    } catch (error) {
      if (!(error instanceof StripeError)) throw error;
    }
  }

  function update(id: string, fields: JsonObject): Answer {
    check('update', fields);
    const intent = locked(id);
    const { metadata, expand, ...rest } = fields;
    addMetadata(intent, metadata);
    Object.assign(intent, rest);
    return ok(told(intent, fields));
  }

  function capture(id: string, fields: JsonObject): Answer {
    check('capture', fields);
    const intent = locked(id);
    if (intent.status !== 'requires_capture') throw unexpected(intent);
    const amount = Number(fields.amount_to_capture ?? intent.amount_capturable);
    if (amount > (intent.amount_capturable as number))
      throw invalid('too much', { code: 'amount_too_large' });
    addMetadata(intent, fields.metadata);
    Object.assign(intent, { status: 'succeeded', amount_received: amount, amount_capturable: 0 });
    const rest = intent.amount - amount;
    const taken = charges.get(intent.latest_charge as string) as JsonObject;
    Object.assign(taken, { captured: true, amount_captured: amount, amount_refunded: rest });
    // The released rest is listed as a refund.
    if (rest > 0)
      Object.assign(keepRefund(intent, taken, rest, 'succeeded', {}), { balance_transaction: null });
    return ok(told(intent, fields));
  }

  function cancel(id: string, fields: JsonObject): Answer {
    check('cancel', fields);
    const intent = locked(id);
    if (['succeeded', 'canceled', 'processing'].includes(intent.status)) throw unexpected(intent);
    codes.canceled(intent);
    const reason = fields.cancellation_reason ?? null;
    Object.assign(intent, { status: 'canceled', amount_capturable: 0, next_action: null });
    Object.assign(intent, { cancellation_reason: reason, canceled_at: Math.floor(nowMs() / 1000) });
    return ok(told(intent, fields));
  }

  function refund(fields: JsonObject): Answer {
    check('refund', fields);
    const intent = locked(String(fields.payment_intent));
    const paid = charges.get(intent.latest_charge as string);
    if (intent.status !== 'succeeded' || !paid) throw invalid('nothing to refund');
    const left = (paid.amount as number) - (paid.amount_refunded as number);
    if (/^(boleto|oxxo)$/.test(String(intent.code_type))) throw invalid('this method has no refunds');
    if (left === 0) throw invalid('refunded', { code: 'charge_already_refunded' });
    const amount = Number(fields.amount ?? left);
    if (amount > left) throw invalid('more than is left');
    const failed = mode.refundStatus === 'failed';
    if (!failed) paid.amount_refunded = (paid.amount_refunded as number) + amount;
    return ok(keepRefund(intent, paid, amount, mode.refundStatus, fields));
  }

  function keepRefund(
    intent: FakeIntent,
    paid: JsonObject,
    amount: number,
    status: string,
    fields: JsonObject,
  ) {
    const made: JsonObject = {
      ...{ id: newId('re'), object: 'refund', amount, currency: intent.currency, status },
      ...{ charge: paid.id as string, payment_intent: intent.id },
      ...{ reason: fields.reason ?? null, metadata: fields.metadata ?? {} },
      ...{ created: Math.floor(nowMs() / 1000), balance_transaction: newId('txn') },
      ...(status === 'failed' && { failure_reason: 'expired_or_canceled_card' }),
    };
    refunds.set(made.id as string, made);
    return made;
  }

  function found(id: string): FakeIntent {
    const intent = intents.get(id);
    if (!intent) throw invalid('No such payment_intent', { code: 'resource_missing', param: 'intent' }, 404);
    const authorizedAt = intent.authorized_at as number;
    if (intent.status === 'requires_capture' && nowMs() - authorizedAt > SEVEN_DAYS_MS) {
      Object.assign(intent, { status: 'canceled', cancellation_reason: 'automatic', amount_capturable: 0 });
    }
    return codes.expired(intent);
  }

  function locked(id: string): FakeIntent {
    const message = 'This object cannot be accessed right now';
    if (mode.locked) throw invalid(message, { code: 'lock_timeout' }, 429);
    return found(id);
  }

  function told(intent: FakeIntent, fields: JsonObject): JsonObject {
    const { authorized_at, code_type, code_end, code_received, ...shown } = intent;
    const expands = Object.values((fields.expand as JsonObject) ?? {}).includes('latest_charge');
    const latest = charges.get(intent.latest_charge as string);
    return structuredClone({ ...shown, ...(expands && latest && { latest_charge: latest }) }) as JsonObject;
  }

  function unexpected(intent: FakeIntent): StripeError {
    const code = 'payment_intent_unexpected_state';
    const payment_intent = told(intent, {});
    return new StripeError(
      400,
      { type: 'invalid_request_error', code, message: 'state', payment_intent },
      true,
    );
  }

  const read = (id: string, fields: JsonObject): Answer => ok(told(found(id), fields));
  return {
    cards,
    intents,
    charges,
    refunds,
    mode,
    codes,
    tokens,
    createMethod,
    createToken,
    createIntent,
    confirm,
    update,
    capture,
    cancel,
    refund,
    read,
    told,
    authenticate,
  };
}

function ok(body: JsonObject): Answer {
  return { status: 200, body };
}
