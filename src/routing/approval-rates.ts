import { assertNever, type Outcome } from '#src/connectors/connector.ts';
import { declineOf } from '#src/connectors/decline.ts';

/** The cards among which approval rates are told apart. What is not known is "". */
export type Segment = {
  readonly cardBrand: string;
  /** ISO 3166-1 alpha-2. */
  readonly issuerCountry: string;
};

/** Recent approval rates by connection, card brand and issuer country. They live in memory, each replica its own. */
export type ApprovalRates = {
  /** Learns from an attempt's outcome; outcomes that say nothing about the provider change nothing. */
  learn(connectionId: string, segment: Segment, outcome: Outcome): void;
  /**
   * The share of attempts that were approved, between 0 and 1, and over how many: recent ones weigh more, so there are
   * never more than 200. The fewer there are, the nearer the rate is to 1, so that what is not known gets tried.
   */
  rate(connectionId: string, segment: Segment): { readonly rate: number; readonly samples: number };
};

/** Age, in payments, at which an attempt still counts for 1/e of the last one. */
const WINDOW = 200;
const DECAY = 1 - 1 / WINDOW;
/** Approvals with which every connection starts. */
const PRIOR = 2;
const MAX_ENTRIES = 10_000;

type Entry = { readonly approved: number; readonly samples: number };
const NOTHING_KNOWN: Entry = { approved: 0, samples: 0 };

/** Creates rates that know nothing yet. */
export function createApprovalRates(): ApprovalRates {
  /** The least recently used first. */
  const entries = new Map<string, Entry>();

  function use(key: string): Entry {
    const entry = entries.get(key);
    if (!entry) return NOTHING_KNOWN;
    entries.delete(key);
    entries.set(key, entry);
    return entry;
  }

  function learn(connectionId: string, segment: Segment, outcome: Outcome): void {
    const isApproved = approvalOf(outcome);
    if (isApproved === undefined) return;
    const key = keyOf(connectionId, segment);
    const { approved, samples } = use(key);
    entries.set(key, { approved: approved * DECAY + (isApproved ? 1 : 0), samples: samples * DECAY + 1 });
    const [oldest] = entries.keys();
    if (entries.size > MAX_ENTRIES && oldest !== undefined) entries.delete(oldest);
  }

  function rate(connectionId: string, segment: Segment): { rate: number; samples: number } {
    const { approved, samples } = use(keyOf(connectionId, segment));
    return { rate: (approved + PRIOR) / (samples + PRIOR), samples };
  }

  return { learn, rate };
}

/** Brands and countries are our own words, without a slash. */
function keyOf(connectionId: string, { cardBrand, issuerCountry }: Segment): string {
  return `${cardBrand}/${issuerCountry}/${connectionId}`;
}

/** Returns true if the provider did its part; undefined when no other could have done better, or nothing was tried. */
function approvalOf(outcome: Outcome): boolean | undefined {
  switch (outcome.kind) {
    case 'approved':
    case 'redirect':
    case 'to_complete':
    case 'pending':
      return true;
    case 'expired':
      return undefined;
    case 'declined':
      return declineOf(outcome.iso8583Code).hard ? undefined : false;
    case 'not_sent':
      return outcome.because === 'unreachable' ? false : undefined;
    case 'unknown':
      return false;
    default:
      return assertNever(outcome);
  }
}
