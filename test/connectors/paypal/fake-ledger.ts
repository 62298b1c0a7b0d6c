import { randomBytes } from 'node:crypto';

/** The fake's JSON. */
export type Json = Record<string, unknown>;
/** A PayPal response: status and body. */
export type FakeAnswer = { readonly status: number; readonly body?: Json };
type Amount = { readonly currency_code: string; readonly value: string };
type Capture = Json & { id: string; status: string; amount: Amount };
type Refund = Json & { id: string; status: string; amount: Amount };

/** An order as PayPal stores it. */
export type FakeOrder = {
  readonly id: string;
  readonly createdAtMs: number;
  readonly unit: Json & { amount: Amount; invoice_id?: string; custom_id?: string };
  readonly returnUrl: string;
  readonly cancelUrl: string;
  status: string;
  readonly captures: Capture[];
  readonly refunds: Refund[];
};

/** Status of the next capture, instead of COMPLETED. */
export type CaptureFate = { readonly issue: string } | { readonly status: string; readonly details?: Json };

const CURRENCIES =
  'AUD BRL CAD CNY CZK DKK EUR HKD HUF ILS JPY MYR MXN TWD NZD NOK PHP PLN GBP SGD SEK CHF THB USD';
const WHOLE_ONLY = new Set(['HUF', 'JPY', 'TWD']);
const HOUR_MS = 3_600_000;
/** Statuses of refunds that return no money. */
const FAILED_REFUNDS = new Set(['FAILED', 'CANCELLED']);

/**
 * Orders, captures and refunds that a fake of PayPal keeps in memory, written from the documentation of
 * Orders v2 and Payments v2.
 */
export function createFakeLedger(baseUrl: () => string) {
  const orders = new Map<string, FakeOrder>();
  const answered = new Map<string, { readonly atMs: number; readonly again: () => FakeAnswer }>();
  const clock = { aheadMs: 0 };
  const fates: CaptureFate[] = [];
  const refundStatuses: string[] = [];
  const nowMs = () => Date.now() + clock.aheadMs;

  /** Carries out a request once for each PayPal-Request-Id, for as long as PayPal keeps the ids. */
  function once(
    path: string,
    requestId: string | undefined,
    keptH: number,
    run: () => FakeAnswer,
    again: () => FakeAnswer,
  ) {
    const key = `${path} ${requestId}`;
    const earlier = requestId === undefined ? undefined : answered.get(key);
    if (earlier && nowMs() - earlier.atMs < keptH * HOUR_MS) return earlier.again();
    const answer = run();
    // A refusal is not stored for repeats.
    if (answer.status < 400 && requestId !== undefined) answered.set(key, { atMs: nowMs(), again });
    return answer;
  }

  function create(body: Json, requestId: string | undefined): FakeAnswer {
    let made: FakeOrder | undefined;
    return once(
      'orders',
      requestId,
      6,
      () => {
        const unit = (body.purchase_units as FakeOrder['unit'][])[0] as FakeOrder['unit'];
        const fault = amountFault(unit.amount) ?? breakdownFault(unit);
        if (fault !== undefined) return unprocessable(fault);
        const refused = fieldFaults(body);
        if (refused.length > 0) return refusedFields(refused);
        const paypal = (
          body.payment_source as {
            paypal: { experience_context: { return_url: string; cancel_url: string } };
          }
        ).paypal;
        made = {
          id: newId(),
          createdAtMs: nowMs(),
          unit,
          returnUrl: paypal.experience_context.return_url,
          cancelUrl: paypal.experience_context.cancel_url,
          status: 'PAYER_ACTION_REQUIRED',
          captures: [],
          refunds: [],
        };
        orders.set(made.id, made);
        return { status: 201, body: show(made) };
      },
      () => ({ status: 200, body: show(made as FakeOrder) }),
    );
  }

  function find(id: string): FakeOrder | undefined {
    const order = orders.get(id);
    const isOver = order && order.captures.length === 0 && nowMs() - order.createdAtMs > 3 * HOUR_MS;
    return isOver ? undefined : order;
  }

  function get(id: string): FakeAnswer {
    const order = find(id);
    return order ? { status: 200, body: show(order) } : notFound();
  }

  function capture(id: string, requestId: string | undefined): FakeAnswer {
    const order = find(id);
    if (!order) return notFound();
    const shown = () => ({ status: 200, body: show(order) });
    return once(
      `capture ${id}`,
      requestId,
      6,
      () => {
        if (order.status === 'COMPLETED') return unprocessable('ORDER_ALREADY_CAPTURED');
        if (order.status !== 'APPROVED') return unprocessable('ORDER_NOT_APPROVED');
        const isPaid = [...orders.values()].some(
          (other) => other.captures.length > 0 && other.unit.invoice_id === order.unit.invoice_id,
        );
        if (isPaid) return unprocessable('DUPLICATE_INVOICE_ID');
        const fate = fates.shift() ?? { status: 'COMPLETED' };
        if ('issue' in fate) return unprocessable(fate.issue);
        const { custom_id, invoice_id, amount } = order.unit;
        const { currency_code, value } = amount;
        order.captures.push({
          id: newId(),
          amount: { currency_code, value },
          custom_id,
          invoice_id,
          final_capture: true,
          status: fate.status,
          ...fate.details,
        });
        order.status = 'COMPLETED';
        return { status: 201, body: show(order) };
      },
      shown,
    );
  }

  function refund(captureId: string, body: Json, requestId: string | undefined): FakeAnswer {
    const order = [...orders.values()].find(({ captures }) => captures.some(({ id }) => id === captureId));
    const taken = order?.captures.find(({ id }) => id === captureId);
    if (!order || !taken) return notFound();
    let made: Refund | undefined;
    return once(
      `refund ${captureId}`,
      requestId,
      45 * 24,
      () => {
        const amount = (body.amount as Amount | undefined) ?? taken.amount;
        const fault = amountFault(amount);
        if (fault !== undefined) return unprocessable(fault);
        const kept = order.refunds.filter(({ status }) => !FAILED_REFUNDS.has(status));
        const back = kept.reduce((sum, one) => sum + Number(one.amount.value), 0);
        const left = Number(taken.amount.value) - back;
        if (left <= 0) return unprocessable('CAPTURE_FULLY_REFUNDED');
        if (Number(amount.value) > left + 1e-9) return unprocessable('REFUND_AMOUNT_EXCEEDED');
        const { custom_id, invoice_id } = body;
        made = { id: newId(), status: refundStatuses.shift() ?? 'COMPLETED', amount, custom_id, invoice_id };
        order.refunds.push(made);
        taken.status = left - Number(amount.value) < 1e-9 ? 'REFUNDED' : 'PARTIALLY_REFUNDED';
        return { status: 201, body: { ...made } };
      },
      () => ({ status: 200, body: { ...made } }),
    );
  }

  function getCapture(id: string): FakeAnswer {
    const capture = [...orders.values()].flatMap(({ captures }) => captures).find((one) => one.id === id);
    return capture ? { status: 200, body: { ...capture } } : notFound();
  }

  function getRefund(id: string): FakeAnswer {
    const refund = [...orders.values()].flatMap(({ refunds }) => refunds).find((one) => one.id === id);
    return refund ? { status: 200, body: { ...refund } } : notFound();
  }

  function show(order: FakeOrder): Json {
    const { id, status, unit, captures, refunds } = order;
    const payments = captures.length > 0 && { payments: structuredClone({ captures, refunds }) };
    const href = `${baseUrl()}/checkoutnow?token=${id}`;
    return {
      id,
      intent: 'CAPTURE',
      status,
      purchase_units: [{ ...unit, ...payments }],
      payer: { email_address: 'payer@example.com', payer_id: 'QYR5Z8XDVJNXQ' },
      links: [
        { href: `${baseUrl()}/v2/checkout/orders/${id}`, rel: 'self', method: 'GET' },
        ...(status === 'PAYER_ACTION_REQUIRED' ? [{ href, rel: 'payer-action', method: 'GET' }] : []),
      ],
    };
  }

  return { orders, clock, fates, refundStatuses, find, create, get, capture, getCapture, refund, getRefund };
}

/** A refusal with an issue, as PayPal words it. */
export function unprocessable(issue: string): FakeAnswer {
  return failure(422, 'UNPROCESSABLE_ENTITY', issue);
}

/** An error in PayPal's form. */
export function failure(status: number, name: string, issue: string): FakeAnswer {
  const message =
    'The requested action could not be performed, semantically incorrect, or failed business validation.';
  return {
    status,
    body: {
      name,
      message,
      debug_id: 'f7a2b1c3d4e5f',
      details: [{ issue, description: `About ${issue}.` }],
      links: [],
    },
  };
}

/** A refusal of fields, with their pointers. */
export function refusedFields(fields: readonly string[]): FakeAnswer {
  const { body } = failure(400, 'INVALID_REQUEST', '');
  const details = fields.map((field) => ({
    ...{ field, location: 'body', issue: 'INVALID_PARAMETER_SYNTAX', value: 'as sent' },
  }));
  return { status: 400, body: { ...body, details } };
}

function fieldFaults(body: Json): string[] {
  const { email_address: email } = (body.payment_source as { paypal: { email_address?: string } }).paypal;
  return email === undefined || /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(email)
    ? []
    : ['/payment_source/paypal/email_address'];
}

function notFound(): FakeAnswer {
  return failure(404, 'RESOURCE_NOT_FOUND', 'INVALID_RESOURCE_ID');
}

function amountFault({ currency_code: currency, value }: Amount): string | undefined {
  if (!CURRENCIES.split(' ').includes(currency)) return 'CURRENCY_NOT_SUPPORTED';
  const decimals = value.split('.')[1] ?? '';
  if (decimals.length > (WHOLE_ONLY.has(currency) ? 0 : 2)) return 'DECIMAL_PRECISION';
  return Number(value) > 0 ? undefined : 'CANNOT_BE_ZERO_OR_NEGATIVE';
}

function breakdownFault(unit: FakeOrder['unit']): string | undefined {
  const { breakdown, value } = unit.amount as Amount & { breakdown?: Record<string, Amount> };
  if (!breakdown) return unit.items ? 'ITEM_TOTAL_REQUIRED' : undefined;
  const cents = (amount: Amount | undefined) => Math.round(Number(amount?.value ?? 0) * 100);
  const items = (unit.items as { quantity: string; unit_amount: Amount }[] | undefined) ?? [];
  const total = items.reduce((sum, item) => sum + Number(item.quantity) * cents(item.unit_amount), 0);
  if (total !== cents(breakdown.item_total)) return 'ITEM_TOTAL_MISMATCH';
  const sum = Object.values(breakdown).reduce((all, part) => all + cents(part), 0);
  return sum === Math.round(Number(value) * 100) ? undefined : 'AMOUNT_MISMATCH';
}

/** 17 characters, like PayPal's. */
function newId(): string {
  return [...randomBytes(17)].map((byte) => '0123456789ABCDEFGHJKLMNPRSTUVWXY'[byte % 32]).join('');
}
