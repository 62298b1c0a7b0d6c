import type { JsonObject } from '@bufbuild/protobuf';
import { type FakeIntent, invalid, newId } from './fake-wire.ts';

/** The parts of the ledger that codes change. */
export type CodesLedger = {
  readonly intents: Map<string, FakeIntent>;
  readonly charges: Map<string, JsonObject>;
  readonly nowMs: () => number;
};

const DAY_S = 86_400;
const CURRENCIES: Readonly<Record<string, string>> = {
  ...{ pix: 'brl', boleto: 'brl', oxxo: 'mxn', customer_balance: 'mxn' },
};
const AMOUNTS: Readonly<Record<string, readonly [number, number]>> = {
  boleto: [500, 4_999_999],
  oxxo: [1_000, 1_000_000],
};
const DAYS: Readonly<
  Record<string, { readonly least: number; readonly most: number; readonly zone: string }>
> = {
  boleto: { least: 0, most: 60, zone: 'America/Sao_Paulo' },
  oxxo: { least: 1, most: 7, zone: 'America/Mexico_City' },
};
const NEEDS: Readonly<Record<string, readonly string[]>> = {
  ...{ pix: [], customer_balance: [], oxxo: ['name', 'email'] },
  boleto: [
    'name',
    'email',
    'address.line1',
    'address.city',
    'address.state',
    'address.postal_code',
    'address.country',
  ],
};

/** The fake's codes: Pix, boleto, OXXO and transfers to a customer's balance. */
export function createCodes({ intents, charges, nowMs }: CodesLedger) {
  const customers = new Map<string, JsonObject>();
  /** Money on the customers' balances that no payment has taken, by customer. */
  const balances = new Map<string, number>();
  const nowS = () => Math.floor(nowMs() / 1_000);

  function createCustomer(fields: JsonObject): JsonObject {
    const made = { id: newId('cus'), object: 'customer', livemode: false, ...fields };
    customers.set(made.id, made);
    balances.set(made.id, 0);
    return made;
  }

  function cashBalance(customer: string): JsonObject {
    if (!customers.has(customer)) throw invalid('No such customer', { code: 'resource_missing' }, 404);
    const available = { mxn: balances.get(customer) ?? 0 };
    return { object: 'cash_balance', available, customer, livemode: false, settings: {} };
  }

  /** Refuses a request for a code that Stripe would refuse. @returns the function that confirms the intent. */
  function checkCode(fields: JsonObject): (intent: FakeIntent) => void {
    const data = (fields.payment_method_data ?? {}) as JsonObject;
    const type = String(data.type);
    const { currency, amount, capture_method } = fields;
    if (!(type in CURRENCIES)) throw invalid('unknown type', { param: 'payment_method_data[type]' });
    if ((fields.payment_method_types as string[])[0] !== type) throw invalid('another type');
    if (currency !== CURRENCIES[type])
      throw invalid('currency', { code: 'invalid_currency', param: 'currency' });
    if (capture_method === 'manual') throw invalid('manual', { param: 'capture_method' });
    const [least, most] = AMOUNTS[type] ?? [1, Number.MAX_SAFE_INTEGER];
    if (Number(amount) < least) throw invalid('amount', { code: 'amount_too_small', param: 'amount' });
    if (Number(amount) > most) throw invalid('amount', { code: 'amount_too_large', param: 'amount' });
    for (const path of NEEDS[type] ?? []) {
      if (!valueAt(data.billing_details, path))
        throw invalid(`Missing ${path}`, { param: 'payment_method_data[billing_details]' });
    }
    if (type === 'boleto' && !/^(\d{11}|\d{14})$/.test(String((data.boleto as JsonObject)?.tax_id))) {
      throw invalid('tax id', { code: 'tax_id_invalid', param: 'payment_method_data[boleto][tax_id]' });
    }
    if (type === 'customer_balance' && !customers.has(String(fields.customer))) {
      throw invalid('customer', { param: 'customer' });
    }
    const endS = endOf(type, fields);
    return (intent) => confirm(intent, type, endS);
  }

  function endOf(type: string, fields: JsonObject): number {
    const options = ((fields.payment_method_options ?? {}) as JsonObject)[type] as JsonObject | undefined;
    if (type === 'pix') {
      const endS = Number(options?.expires_at ?? nowS() + DAY_S);
      const leftS = endS - nowS();
      if (leftS < 10 || leftS > 14 * DAY_S)
        throw invalid('expires_at', { param: 'payment_method_options[pix][expires_at]' });
      return endS;
    }
    if (type === 'customer_balance') {
      const transfer = options?.bank_transfer as JsonObject | undefined;
      if (options?.funding_type !== 'bank_transfer' || transfer?.type !== 'mx_bank_transfer')
        throw invalid('funding');
      return Number.POSITIVE_INFINITY;
    }
    const { least = 0, most = 0, zone = '' } = DAYS[type] ?? {};
    const days = Number(options?.expires_after_days ?? 3);
    if (days < least || days > most)
      throw invalid('days', { param: `payment_method_options[${type}][expires_after_days]` });
    const today = Temporal.Instant.fromEpochMilliseconds(nowMs()).toZonedDateTimeISO(zone).startOfDay();
    return today.add({ days: days + 1 }).epochMilliseconds / 1_000 - 1;
  }

  function confirm(intent: FakeIntent, type: string, endS: number): void {
    Object.assign(intent, {
      status: 'requires_action',
      payment_method: newId('pm'),
      code_type: type,
      code_end: endS,
    });
    if (type !== 'customer_balance') {
      intent.next_action = actionOf(intent, type, endS);
      return;
    }
    intent.code_received = 0;
    // Money that an earlier payment has left on the balance settles this one.
    apply(intent, 0);
  }

  /** The payer pays. @param isConfirmed false: the bank has yet to confirm. @param amount of a transfer. */
  function pay(
    id: string,
    { amount, isConfirmed = true }: { amount?: number; isConfirmed?: boolean } = {},
  ): void {
    const intent = expired(intents.get(id) as FakeIntent);
    if (intent.code_type === 'customer_balance') {
      apply(intent, amount ?? intent.amount);
      return;
    }
    if (intent.status !== 'requires_action' && intent.status !== 'processing')
      throw new Error('the code is worthless');
    intent.next_action = null;
    if (isConfirmed) settle(intent);
    else intent.status = 'processing';
  }

  function apply(intent: FakeIntent, transferred: number): void {
    const customer = String(intent.customer);
    const onBalance = (balances.get(customer) ?? 0) + transferred;
    if (intent.status !== 'requires_action') {
      balances.set(customer, onBalance);
      return;
    }
    const needed = intent.amount - Number(intent.code_received);
    const applied = Math.min(needed, onBalance);
    balances.set(customer, onBalance - applied);
    intent.code_received = Number(intent.code_received) + applied;
    intent.next_action = actionOf(intent, 'customer_balance', 0);
    if (intent.code_received === intent.amount) settle(intent);
  }

  function settle(intent: FakeIntent): void {
    const type = String(intent.code_type);
    const made: JsonObject = {
      ...{ id: newId('py'), object: 'charge', amount: intent.amount, amount_captured: intent.amount },
      ...{ amount_refunded: 0, captured: true, currency: intent.currency, payment_intent: intent.id },
      ...{ metadata: { ...intent.metadata }, status: 'succeeded', outcome: { type: 'authorized' } },
      payment_method_details: { type, [type]: {} },
    };
    charges.set(made.id as string, made);
    Object.assign(intent, { status: 'succeeded', next_action: null, latest_charge: made.id });
    Object.assign(intent, { amount_received: intent.amount, authorized_at: nowMs() });
  }

  /** Ends the code of an intent if its time is over. The intent can then be confirmed again. */
  function expired(intent: FakeIntent): FakeIntent {
    if (intent.code_type === undefined || intent.status !== 'requires_action') return intent;
    if (nowS() > Number(intent.code_end)) expire(intent.id);
    return intent;
  }

  function expire(id: string, code = 'payment_intent_payment_attempt_expired'): void {
    const intent = intents.get(id) as FakeIntent;
    const last_payment_error = {
      type: 'invalid_request_error',
      code,
      message: 'The payment attempt has ended.',
    };
    Object.assign(intent, {
      status: 'requires_payment_method',
      payment_method: null,
      next_action: null,
      last_payment_error,
    });
  }

  /** A canceled transfer returns its parts to the balance. */
  function canceled(intent: FakeIntent): void {
    if (intent.code_type !== 'customer_balance') return;
    const customer = String(intent.customer);
    balances.set(customer, (balances.get(customer) ?? 0) + Number(intent.code_received));
  }

  return { customers, balances, createCustomer, cashBalance, checkCode, pay, expire, expired, canceled };
}

function actionOf(intent: FakeIntent, type: string, endS: number): JsonObject {
  const page = `https://payments.stripe.com/${type}/${intent.id}`;
  switch (type) {
    case 'pix': {
      const images = { image_url_png: `${page}.png`, image_url_svg: `${page}.svg` };
      const code = { data: `00020126580014br.gov.bcb.pix0136${intent.id}6304ABCD`, ...images };
      return {
        type: 'pix_display_qr_code',
        pix_display_qr_code: { ...code, hosted_instructions_url: page, expires_at: endS },
      };
    }
    case 'boleto': {
      const number = '03399333845293749345103201015660199700000300000';
      const details = {
        number,
        pdf: `${page}/pdf`,
        hosted_voucher_url: page,
        expires_at: endS,
      };
      return { type: 'boleto_display_details', boleto_display_details: details };
    }
    case 'oxxo': {
      const details = {
        number: '98000000012345678901234567890123',
        hosted_voucher_url: page,
        expires_after: endS,
      };
      return { type: 'oxxo_display_details', oxxo_display_details: details };
    }
    default: {
      const spei = { clabe: '002180650612345670', bank_name: 'BANAMEX', bank_code: '002' };
      const details = {
        ...{ amount_remaining: intent.amount - Number(intent.code_received), currency: intent.currency },
        ...{ reference: 'ABC123XYZ', hosted_instructions_url: page, type: 'mx_bank_transfer' },
        financial_addresses: [{ type: 'spei', supported_networks: ['spei'], spei }],
      };
      return { type: 'display_bank_transfer_instructions', display_bank_transfer_instructions: details };
    }
  }
}

function valueAt(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, name) => (inner as JsonObject | undefined)?.[name], value);
}
