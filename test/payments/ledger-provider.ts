import { create } from '@bufbuild/protobuf';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import { CARDS_ONLY } from '#src/connectors/port/capabilities.ts';
import type { LookUp, Operation, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';

/** A provider's behavior in a call: whether it performs the call, and how it responds. */
export type Behaviour =
  | 'does it'
  | 'declines it'
  | 'does it, unanswered'
  | 'never hears of it'
  | 'refuses it'
  | 'delays it'
  | 'is reached late'
  | 'sends the payer away';

/** The state of a charge; amounts in minor units. */
export type Charge = {
  authorized: bigint;
  captured: bigint;
  refunded: bigint;
  released: boolean;
  /** The parts of `captured` and `refunded` that the merchant moved at the provider itself. */
  readonly outside: { captured: bigint; refunded: bigint };
};

/** A provider that keeps its own books for one connection, and follows scripted behaviors. */
export type LedgerProvider = {
  readonly connection: ProviderConnection;
  /** Upcoming behaviors, one per call; `does it` when none is left. */
  readonly next: Behaviour[];
  /** The state of a charge at the provider. */
  bookOf(transactionId: string): Charge;
  /** Every call that moved money, in order: kind and the transaction's id. */
  readonly moved: string[];
  /** The payer of a redirect pays, even after it was closed. */
  payerPays(transactionId: string): void;
  /** The payer of a code pays, even after it has run out. @returns false if nobody can pay it. */
  paysCode(transactionId: string): boolean;
  /** A code that nobody has paid runs out. */
  endsCode(transactionId: string): void;
  /** Returns true if a code can still be paid, apart from late money. */
  isPayable(transactionId: string): boolean;
  /** The merchant captures or refunds at the provider itself. */
  elsewhere(transactionId: string, made: { readonly captured?: bigint; readonly refunded?: bigint }): void;
  /** Performs the delayed calls. */
  settleDelayed(): void;
  /** Receives the late calls, even those closed meanwhile: a call that is under way cannot be closed. */
  receiveLate(): void;
};

const ALL: Capabilities = {
  ...CARDS_ONLY,
  methods: ['CARD', 'PAYER_PAGE'],
  authorization: true,
  captures: 10,
  refunds: 'several',
  cancel: true,
  close: true,
  localMethods: {
    PIX: {
      ...{
        countries: ['CO'],
        currencies: ['USD'],
        needs: [],
        expiry: { default: 60, least: 1, greatest: 600 },
      },
      ...{ refunds: 'several', close: true },
    },
    OXXO: {
      ...{
        countries: ['CO'],
        currencies: ['USD'],
        needs: [],
        expiry: { default: 60, least: 1, greatest: 600 },
      },
      ...{ refunds: 'none', close: false },
    },
  },
};
const told = { providerData: create(ProviderDataSchema) };

/** Returns the provider's own id of a transaction. */
export function ledgerReference(transactionId: string): string {
  return `ledger-${transactionId}`;
}

function done(id: string): Outcome {
  const reference = ledgerReference(id);
  const names = { reference, providerPaymentId: reference };
  return { kind: 'approved', ...told, ...names, authorizationCode: '', retrievalReferenceNumber: '' };
}

const REDIRECT: Outcome = { kind: 'awaits_payer', ...told, show: { page: 'https://wallet.example/pay' } };

const CODE: Outcome = { kind: 'awaits_payer', ...told, show: { instructions: { text: '000201' } } };

/**
 * Opens a provider that keeps its own books. It never takes more than it should: a call that breaks
 * its books throws and fails the test.
 */
export function ledgerProvider(): LedgerProvider {
  const charges = new Map<string, Charge>();
  const results = new Map<string, Outcome>();
  const delayed: (() => void)[] = [];
  const late: (() => void)[] = [];
  const away = new Map<string, () => void>();
  const codes = new Map<string, bigint>();
  const closed = new Set<string>();
  const moved: string[] = [];
  const next: Behaviour[] = [];

  const chargeOf = (id: string) => charges.get(id) ?? fail(`there is no charge ${id}`);

  function take(id: string, kind: string, apply: () => void): Outcome {
    // A call after the close is refused, and proves nothing else.
    if (closed.has(id)) return { kind: 'unknown', detail: 'closed', providerData: undefined };
    const behaviour = next.shift() ?? 'does it';
    const doIt = () => {
      if (results.has(id)) fail(`${kind} ${id} was sent twice`);
      apply();
      moved.push(`${kind} ${id}`);
      results.set(id, done(id));
    };
    switch (behaviour) {
      case 'does it':
        doIt();
        return done(id);
      case 'does it, unanswered':
        doIt();
        return { kind: 'unknown', detail: 'reset', providerData: undefined };
      case 'never hears of it':
        return { kind: 'unknown', detail: 'timeout', providerData: undefined };
      case 'refuses it':
        return { kind: 'not_sent', because: 'turned_away', detail: '400' };
      case 'declines it':
        results.set(id, { kind: 'declined', ...told, iso8583Code: '51', advice: 'NONE' });
        return results.get(id) as Outcome;
      case 'delays it':
        results.set(id, { kind: 'pending', ...told });
        delayed.push(() => {
          results.delete(id);
          doIt();
        });
        return { kind: 'pending', ...told };
      case 'is reached late':
        late.push(doIt);
        return { kind: 'unknown', detail: 'timeout', providerData: undefined };
      case 'sends the payer away':
        results.set(id, REDIRECT);
        away.set(id, apply);
        return REDIRECT;
    }
  }

  function charge(id: string, authorized: bigint, isCapture: boolean): void {
    charges.set(id, {
      ...{ authorized, captured: isCapture ? authorized : 0n, refunded: 0n, released: false },
      outside: { captured: 0n, refunded: 0n },
    });
  }

  /** Makes a code, which takes no money. */
  function makeCode(id: string, amount: bigint): Outcome {
    if (closed.has(id)) return { kind: 'unknown', detail: 'closed', providerData: undefined };
    const make = () => {
      codes.set(id, amount);
      results.set(id, CODE);
    };
    const behaviour = next.shift() ?? 'does it';
    if (behaviour === 'refuses it') return { kind: 'not_sent', because: 'turned_away', detail: '400' };
    if (behaviour === 'is reached late') late.push(make);
    else if (behaviour !== 'never hears of it') make();
    const isLost = ['does it, unanswered', 'never hears of it', 'is reached late'].includes(behaviour);
    return isLost ? { kind: 'unknown', detail: 'reset', providerData: undefined } : CODE;
  }

  async function lookUp({ transactionId, close }: LookUp): Promise<Outcome> {
    const known = results.get(transactionId);
    if (known?.kind === 'awaits_payer' && close) {
      results.set(transactionId, { kind: 'expired', ...told });
      if (known === CODE) closed.add(transactionId);
    }
    if (known) return withTotals(transactionId, results.get(transactionId) ?? known);
    if (!close) return { kind: 'unknown', detail: 'not heard of', providerData: undefined };
    closed.add(transactionId);
    return { kind: 'not_sent', because: 'turned_away', detail: 'closed' };
  }

  function withTotals(transactionId: string, outcome: Outcome): Outcome {
    const charge = charges.get(transactionId);
    if (outcome.kind !== 'approved' || !charge) return outcome;
    return { ...outcome, totals: { captured: charge.captured, refunded: charge.refunded } };
  }

  const connection: ProviderConnection = {
    identity: 'ledger',
    environment: 'TEST',
    capabilities: ALL,
    deadlineMs: 1_000,
    async pay({ transactionId, money, method }) {
      if (method.by === 'payer' && method.show === 'instructions') {
        return makeCode(transactionId, money.minorUnits);
      }
      if (method.by === 'payer') {
        results.set(transactionId, REDIRECT);
        return REDIRECT;
      }
      const isCapture = method.by !== 'card' || method.capture;
      return take(transactionId, 'pay', () => charge(transactionId, money.minorUnits, isCapture));
    },
    async capture({ transactionId, money, payment, isFinal }) {
      return take(transactionId, 'capture', () => {
        const charge = chargeOf(payment.transactionId);
        charge.captured += money.minorUnits;
        if (charge.released || charge.captured > charge.authorized) fail('captured more than authorized');
        charge.released = isFinal;
      });
    },
    async cancel({ transactionId, payment }: Operation) {
      return take(transactionId, 'cancel', () => {
        const charge = chargeOf(payment.transactionId);
        if (charge.released) fail('canceled what was released');
        charge.released = true;
      });
    },
    async refund({ transactionId, money, payment }: Operation) {
      return take(transactionId, 'refund', () => {
        const charge = chargeOf(payment.transactionId);
        charge.refunded += money.minorUnits;
        if (charge.refunded > charge.captured) fail('refunded more than captured');
      });
    },
    complete: undefined,
    lookUp,
    readNotification: undefined,
    probe: undefined,
    readAccount: async () => ({ result: 'ACCEPTED', account: undefined, environment: 'TEST' }),
    close: async () => {},
  };
  return {
    connection,
    next,
    moved,
    bookOf: chargeOf,
    payerPays(transactionId) {
      away.get(transactionId)?.();
      results.set(transactionId, done(transactionId));
    },
    paysCode(id) {
      const amount = codes.get(id);
      const isOver = charges.has(id) || closed.has(id) || amount === undefined;
      if (isOver) return false;
      charge(id, amount, true);
      moved.push(`pay ${id}`);
      results.set(id, done(id));
      return true;
    },
    endsCode(id) {
      if (results.get(id) === CODE) results.set(id, { kind: 'expired', ...told });
    },
    isPayable: (id) => results.get(id) === CODE,
    elsewhere(transactionId, { captured = 0n, refunded = 0n }) {
      const charge = chargeOf(transactionId);
      charge.captured += captured;
      charge.refunded += refunded;
      charge.outside.captured += captured;
      charge.outside.refunded += refunded;
    },
    settleDelayed() {
      for (const settle of delayed.splice(0)) settle();
    },
    receiveLate() {
      for (const receive of late.splice(0)) receive();
    },
  };
}

function fail(why: string): never {
  throw new Error(`the provider's books are broken: ${why}`);
}
