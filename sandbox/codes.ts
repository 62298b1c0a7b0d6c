import { ApiError } from './api-error.ts';
import { readOrder } from './behaviour.ts';
import { type Decided, issuerFields } from './charges.ts';
import { BANKS, CODE_METHODS, type CodeMethod, type CodeMethodName, isCodeMethod } from './code-methods.ts';
import { type Call, newEntry, newId } from './entries.ts';
import { readCommonDetails, readExpiry, readMoney, readPage, readTexts } from './entry-details.ts';
import type { CodeDetails } from './ledger-entry.ts';
import { type JsonRecord, optionalText, text } from './request-body.ts';

const MINUTE_MS = 60_000;
/** Time after which a transfer of another amount arrives. */
const OTHER_AMOUNT_MS = 3_000;
/** Time after its expiry at which a code is paid late. */
const LATE_MS = 5_000;

/**
 * Reads POST /v1/codes: a code that the payer pays later (`PIX`, `BOLETO`, `OXXO`, `SPEI`, `EFECTY`), or a payment on the
 * page of the payer's bank (`PSE`).
 *
 * @throws ApiError naming the field at fault.
 */
export function decideCode(body: JsonRecord, call: Call, publicUrl: string): Decided {
  const id = newId('code');
  const method = text(body, 'method', /^[A-Z_]{1,64}$/);
  if (!isCodeMethod(method)) throw refused('method', 'is not offered');
  const rules = CODE_METHODS[method];
  const { amount, currency } = readMoney(body);
  if (currency !== rules.currency) throw refused('currency', `must be ${rules.currency}`);
  if (amount > (rules.maxAmount ?? amount)) throw refused('amount', `must be at most ${rules.maxAmount}`);
  const bank = readBank(body, rules);
  const order = readOrder(optionalText(body, 'description'), rules.takesAnyAmount ? 'transfer' : 'code');
  const behaviour = order.behaviour ?? { kind: 'approve' };
  const isAsked = optionalText(body, 'expires_at') !== undefined;
  const validMinutes = isAsked ? rules.maxMinutes : rules.validMinutes;
  const expiresAtMs = readExpiry(body, order, validMinutes * MINUTE_MS);
  const responseCode = behaviour.kind === 'decline' ? behaviour.responseCode : undefined;
  const status = responseCode === undefined ? 'created' : 'declined';
  const plan = status === 'created' ? planOf(order, expiresAtMs) : [];
  const page = `${publicUrl}/codes/${id}`;
  const { response_code, response_message } = issuerFields({ status, responseCode });
  const entry = newEntry({
    kind: 'code',
    id,
    call,
    status,
    ...(responseCode !== undefined && { responseCode }),
    amount,
    currency,
    expiresAtMs,
    fields: {
      method,
      bank: bank ?? null,
      ...readTexts(body),
      ...{ response_code, response_message, amount_received: 0 },
      instructions: rules.isAtBank ? null : rules.instructionsOf({ id, amount, expiresAtMs }),
      ...(rules.isAtBank ? { bank_url: page, page_url: null } : { bank_url: null, page_url: page }),
    },
    due: plan[0],
    details: {
      ...readCommonDetails(body, order),
      page: readPage(body),
      code: { method, received: 0, plan, ...(bank !== undefined && { bank }) },
    },
  });
  return { entry, behaviour };
}

/**
 * Returns what happens to a code by itself: it expires, unless the description requests that it is paid or declined
 * before, and it may be paid late.
 */
function planOf(
  { behaviour, payer }: ReturnType<typeof readOrder>,
  expiresAtMs: number,
): CodeDetails['plan'] {
  const now = Date.now();
  const expiry = { status: 'expired', atMs: expiresAtMs } as const;
  switch (payer?.kind) {
    case 'paid_late':
      return [
        { ...expiry, atMs: now + payer.delayMs },
        { status: 'paid', atMs: now + payer.delayMs + LATE_MS, isLate: true },
      ];
    case 'confirm_after':
      return [
        { status: 'confirming', atMs: now },
        { status: 'paid', atMs: now + payer.delayMs },
      ];
    case 'underpaid':
    case 'overpaid':
      return beforeExpiry({ status: payer.kind, atMs: now + OTHER_AMOUNT_MS }, expiry);
    default:
  }
  if (behaviour?.kind !== 'done_after' && behaviour?.kind !== 'fail_after') return [expiry];
  const status = behaviour.kind === 'done_after' ? 'paid' : 'declined';
  return beforeExpiry({ status, atMs: now + behaviour.delayMs }, expiry);
}

type Planned = CodeDetails['plan'][number];

/** An expired code can be neither paid nor declined. */
function beforeExpiry(planned: Planned, expiry: Planned): CodeDetails['plan'] {
  return planned.atMs < expiry.atMs ? [planned, expiry] : [expiry];
}

function readBank(body: JsonRecord, { isAtBank }: CodeMethod): string | undefined {
  if (!isAtBank) return undefined;
  const bank = text(body, 'bank', /^\d{1,20}$/);
  if (!BANKS.some(({ id }) => id === bank)) throw refused('bank', 'is not one of the banks');
  return bank;
}

/** Reads GET /v1/banks?method=PSE: the banks from which payers choose; none for other methods. */
export function listBanks(method: unknown): object {
  const isAtBank =
    typeof method === 'string' &&
    isCodeMethod(method) &&
    CODE_METHODS[method satisfies CodeMethodName].isAtBank;
  return { object: 'bank_list', banks: isAtBank ? BANKS : [] };
}

function refused(param: string, message: string): ApiError {
  return new ApiError(422, 'invalid_request', message, param);
}
