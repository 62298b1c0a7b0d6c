import { type KeyObject, X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import type { Secret } from '#src/secret.ts';
import { createHttpClient } from '../kit/http-client.ts';
import type { PayPalSettings } from './settings.ts';

/** The certificates with which PayPal signs notifications, by URL. */
export type Certificates = {
  /** Returns true for a certificate that was fetched and trusted before. */
  isKnown(url: string, nowMs: number): boolean;
  /**
   * Returns the public key of a certificate, fetched if necessary; undefined if it could not be fetched or is not
   * trusted. Never rejects.
   */
  keyOf(url: string, nowMs: number): Promise<KeyObject | undefined>;
  /** Waits for the requests in flight. */
  close(): Promise<void>;
};

const TIMEOUT_MS = 5_000;
/** A chain of four certificates takes about 8 KB. */
const MAX_CHAIN_BYTES = 64 * 1024;
const MAX_FETCHES_IN_FLIGHT = 4;
/** Limit on the certificates in memory, of either kind. PayPal uses one at a time. */
const MAX_KNOWN = 8;
/** Time after which a certificate is fetched again, in case it was replaced at its URL. */
const FRESH_MS = 86_400_000;
/** Time after which a certificate that could not be used is fetched again. */
const RETRY_MS = 60_000;

/** A certificate's state; `key` is undefined if it could not be used. */
type Known = { readonly key: KeyObject | undefined; readonly endsAtMs: number; freshUntilMs: number };

/** Creates an empty set of certificates. */
export function createCertificates(
  { origin, timeoutMs }: Pick<PayPalSettings, 'origin' | 'timeoutMs'>,
  proxy?: Secret,
): Certificates {
  const trusted = new Map<string, Known>();
  const unusable = new Map<string, Known>();
  const fetching = new Map<string, Promise<KeyObject | undefined>>();

  async function fetchChain(url: string): Promise<string | undefined> {
    const { origin: itsOrigin, pathname, search } = new URL(url);
    // A test double or a proxy at `base_url` stands for PayPal's other hosts, too.
    const client = createHttpClient({
      origin: isPayPalHost(new URL(origin).hostname) ? itsOrigin : origin,
      timeoutMs: Math.min(TIMEOUT_MS, timeoutMs),
      maxResponseBytes: MAX_CHAIN_BYTES,
      proxy,
    });
    const headers = { accept: '*/*' };
    const result = await client.request({ method: 'GET', path: pathname + search, headers, body: undefined });
    await client.close();
    return result.kind === 'answer' && result.status === 200
      ? Buffer.from(result.body).toString('latin1')
      : undefined;
  }

  async function fetchKey(url: string, nowMs: number): Promise<KeyObject | undefined> {
    const chain = await fetchChain(url);
    const found = chain === undefined ? undefined : trustedKey(chain, getCACertificates('default'), nowMs);
    const before = trusted.get(url);
    if (found) remember(trusted, url, { ...found, freshUntilMs: nowMs + FRESH_MS });
    else if (before) before.freshUntilMs = nowMs + RETRY_MS;
    else remember(unusable, url, { key: undefined, endsAtMs: Infinity, freshUntilMs: nowMs + RETRY_MS });
    return found?.key ?? (before && before.endsAtMs > nowMs ? before.key : undefined);
  }

  return {
    isKnown: (url, nowMs) => (trusted.get(url)?.endsAtMs ?? 0) > nowMs,
    async keyOf(url, nowMs) {
      const known = trusted.get(url) ?? unusable.get(url);
      if (known && Math.min(known.freshUntilMs, known.endsAtMs) > nowMs) return known.key;
      const underWay = fetching.get(url);
      if (underWay) return underWay;
      if (fetching.size >= MAX_FETCHES_IN_FLIGHT) return undefined;
      const fetched = fetchKey(url, nowMs).finally(() => fetching.delete(url));
      fetching.set(url, fetched);
      return fetched;
    },
    close: async () => void (await Promise.all(fetching.values())),
  };
}

/** Adds an entry, and drops the oldest if there are too many. */
function remember(known: Map<string, Known>, url: string, entry: Known): void {
  known.delete(url);
  known.set(url, entry);
  const [oldest] = known.keys();
  if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
}

/** Returns true for a host of PayPal. */
export function isPayPalHost(hostname: string): boolean {
  return hostname.endsWith('.paypal.com');
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const MAX_CHAIN_LENGTH = 8;

/**
 * Returns the RSA key of the first certificate in a PEM chain, and the time at which the chain ends; undefined unless
 * the certificate is for a host of PayPal and a chain of valid certificates leads from it to a root. Revocation is not
 * checked: the chain comes from PayPal over TLS.
 *
 * @param roots the trusted roots, in PEM.
 */
export function trustedKey(
  chain: string,
  roots: readonly string[],
  nowMs: number,
): { readonly key: KeyObject; readonly endsAtMs: number } | undefined {
  const certificates = (chain.match(PEM) ?? []).slice(0, MAX_CHAIN_LENGTH).flatMap(parse);
  const [leaf] = certificates;
  if (!leaf || !isForPayPal(leaf) || leaf.publicKey.asymmetricKeyType !== 'rsa') return undefined;
  const parsedRoots = roots.flatMap(parse);
  let endsAtMs = Number.POSITIVE_INFINITY;
  let current = leaf;
  for (let i = 0; i < MAX_CHAIN_LENGTH; i++) {
    if (!isValidAt(current, nowMs)) return undefined;
    endsAtMs = Math.min(endsAtMs, current.validToDate.getTime());
    const isIssuer = (one: X509Certificate) =>
      one.ca && current.checkIssued(one) && current.verify(one.publicKey);
    if (parsedRoots.some((root) => isValidAt(root, nowMs) && isIssuer(root)))
      return { key: leaf.publicKey, endsAtMs };
    const issuer = certificates.find((one) => one !== current && isIssuer(one));
    if (!issuer) return undefined;
    current = issuer;
  }
  return undefined;
}

function parse(pem: string): X509Certificate[] {
  try {
    return [new X509Certificate(pem)];
  } catch {
    return [];
  }
}

/** Reports whether every name of a certificate is a host of PayPal. */
function isForPayPal({ subject, subjectAltName }: X509Certificate): boolean {
  const names = subjectAltName?.split(', ') ?? [`DNS:${/^CN=(.*)$/m.exec(subject)?.[1] ?? ''}`];
  return names.every((name) => name.startsWith('DNS:') && isPayPalHost(name));
}

function isValidAt({ validFromDate, validToDate }: X509Certificate, nowMs: number): boolean {
  return validFromDate.getTime() <= nowMs && nowMs < validToDate.getTime();
}
