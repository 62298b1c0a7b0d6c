import type { Edit } from '../support/plant.ts';
import type { Orders } from './explore.ts';
import type { Plan } from './plan.ts';

/** A fault that only certain orders of steps reveal. */
export type Plant = {
  readonly edits: readonly Edit[];
  /** The findings that prove the fault; any other finding proves nothing. */
  readonly finding: RegExp;
  /** The orders in which the fault is found, and in which the service without the fault is sound. */
  readonly orders: Orders;
};

const SCHEMA = 'src/store/migrations/0001_baseline.sql';

/** Nobody dies, since the network takes only one step. */
const NOBODY = { actor: 'network', afterSteps: 14 } as const;

/** An approved payment, and two operations on it that together exceed it. */
const TWO_OPERATIONS: Partial<Plan> = {
  ...{
    isMade: true,
    isOperated: false,
    capture: false,
    operation: 'capture',
    isFinal: false,
    forgets: false,
  },
  ...{ behaviours: [], leasesEnd: false, dies: NOBODY },
  actors: ['create', 'operation'],
};

/** The second of two operations, after the first has ended. */
const SECOND_OPERATION: Partial<Plan> = {
  ...TWO_OPERATIONS,
  isOperated: true,
  forgets: true,
  actors: ['operation'],
};

const ONE_PAYMENT: Partial<Plan> = {
  ...{ isMade: false, isOperated: false, capture: true, forgets: false, leasesEnd: false },
  ...{ behaviours: [], dies: NOBODY, actors: ['create', 'news'] },
};

/** Each plant has the fewest orders that find it, and some more, since other steps make other orders. */
export const PLANTS: Readonly<Record<string, Plant>> = {
  'a write that does not check whether the payment has changed': {
    edits: [{ file: SCHEMA, find: 'p.version = the_version AND (NOT', replacement: '(NOT' }],
    // The record that is written was read before the operation was claimed.
    finding: /has no transaction/,
    orders: { plan: { ...TWO_OPERATIONS, actors: ['operation', 'dispute'] }, runs: 20 },
  },
  'a claim that does not check whether the payment has changed or has an open operation': {
    edits: [
      { file: SCHEMA, find: 'p.version = the_version AND p.open_operation IS NULL', replacement: 'true' },
    ],
    finding: /captured more than authorized/,
    orders: { plan: TWO_OPERATIONS, runs: 10 },
  },
  'an operation whose unknown outcome counts as never sent': {
    edits: [
      {
        file: 'src/payments/operate/operate-payment.ts',
        find: 'transactionId, outcome, pauseS',
        replacement: `transactionId, outcome: outcome.kind === 'unknown'
          ? { kind: 'not_sent', because: 'turned_away', detail: '' } : outcome, pauseS`,
      },
    ],
    finding: /is ERROR, and at the provider true/,
    orders: {
      plan: { ...TWO_OPERATIONS, behaviours: ['does it, unanswered'], actors: ['operation'] },
      runs: 1,
    },
  },
  'news that overtakes the caller': {
    edits: [
      { file: 'src/store/engine/due-work.ts', find: "where: 'fence > 0'", replacement: "where: 'true'" },
    ],
    finding: /leased to its caller/,
    // The caller has sent the payment and stands still.
    orders: { plan: { ...ONE_PAYMENT, dies: { actor: 'create', afterSteps: 2 } }, runs: 10 },
  },
  'a close before the deadline': {
    edits: [
      {
        file: 'src/payments/model/schedule.ts',
        find: 'ageMs >= connection.deadlineMs + schedule.closingMarginMs',
        replacement: 'ageMs >= connection.deadlineMs - schedule.closingMarginMs',
      },
    ],
    finding: /is ERROR, and at the provider true/,
    orders: {
      plan: { ...ONE_PAYMENT, behaviours: ['is reached late'], actors: ['create', 'news', 'checker one'] },
      runs: 10,
    },
  },
  'a bound of captures without the earlier captures': {
    edits: [
      {
        file: SCHEMA,
        find: 'p.captured_minor_units + the_minor_units <=',
        replacement: 'the_minor_units <=',
      },
    ],
    finding: /captured more than authorized/,
    orders: { plan: SECOND_OPERATION, runs: 1 },
  },
  'bounds of refunds without the earlier refunds': {
    edits: [
      {
        file: SCHEMA,
        find: 'p.refunded_minor_units + the_minor_units <=',
        replacement: 'the_minor_units <=',
      },
      {
        file: SCHEMA,
        find: 'SELECT coalesce(sum(r.amount_minor_units), 0)',
        replacement: 'SELECT 0 * coalesce(sum(r.amount_minor_units), 0)',
      },
    ],
    finding: /refunded more than captured/,
    orders: { plan: { ...SECOND_OPERATION, capture: true, operation: 'refund' }, runs: 1 },
  },
  'a final capture that does not release the rest': {
    edits: [
      {
        file: 'src/payments/model/books.ts',
        find: 'books.isReleased || operation.isFinal',
        replacement: 'books.isReleased',
      },
    ],
    finding: /released: here false, at the provider true/,
    orders: { plan: { ...TWO_OPERATIONS, isFinal: true, actors: ['operation'] }, runs: 1 },
  },
  "a write that closes another transaction's operation": {
    edits: [
      {
        file: SCHEMA,
        find: 'p.open_operation = the_transaction AND',
        // A write without a reported transaction has no status.
        replacement: `coalesce(new_transaction_status, '') NOT IN ('CREATED', 'PENDING')
          OR p.open_operation = the_transaction AND`,
      },
    ],
    finding: /captured more than authorized|at the provider itself: here 6000/,
    orders: {
      plan: { ...TWO_OPERATIONS, behaviours: ['delays it'], actors: ['create', 'operation', 'dispute'] },
      runs: 20,
    },
  },
};
