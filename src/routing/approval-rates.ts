import { isHard } from '#src/connectors/port/decline.ts';
import { assertNever, type Outcome } from '#src/connectors/port/outcome.ts';

/** A group of cards with a separate approval rate. Unknown fields are "". */
export type Segment = {
  readonly cardBrand: string;
  /** ISO 3166-1 alpha-2. */
  readonly issuerCountry: string;
};

/** Recent approval rates by connection, card brand and issuer country. Each replica keeps them in memory. */
export type ApprovalRates = {
  /** Records an attempt's outcome. An outcome that does not reflect on the provider changes nothing. */
  learn(connectionId: string, segment: Segment, outcome: Outcome): void;
  /**
   * Returns the share of approved attempts, from 0 to 1, and their number. Recent attempts weigh more, so the number
   * never exceeds 200. The fewer the attempts, the closer the rate is to 1, so that unknown connections are tried.
   */
  rate(connectionId: string, segment: Segment): { readonly rate: number; readonly samples: number };
};

/** Age, in payments, at which an attempt weighs 1/e as much as the latest one. */
const WINDOW = 200;
const DECAY = 1 - 1 / WINDOW;
/** Number of approvals that every connection starts with. */
const PRIOR = 2;
const MAX_ENTRIES = 10_000;

type Entry = { readonly approved: number; readonly samples: number };
const NOTHING_KNOWN: Entry = { approved: 0, samples: 0 };

/** Creates empty rates. */
export function createApprovalRates(): ApprovalRates {
  /** Ordered from least to most recently used. */
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

/** Returns an unambiguous key: brands and countries come from our own lists and contain no slash. */
function keyOf(connectionId: string, { cardBrand, issuerCountry }: Segment): string {
  return `${cardBrand}/${issuerCountry}/${connectionId}`;
}

/** Returns true if the provider did its part; undefined if no provider could have done better, or nothing was tried. */
function approvalOf(outcome: Outcome): boolean | undefined {
  switch (outcome.kind) {
    case 'approved':
    case 'awaits_payer':
    case 'to_complete':
    case 'pending':
      return true;
    case 'expired':
      return undefined;
    case 'declined':
      return isHard(outcome) ? undefined : false;
    case 'not_sent':
      return outcome.because === 'unreachable' ? false : undefined;
    case 'unknown':
      return false;
    default:
      return assertNever(outcome);
  }
}
