import { domainToASCII } from 'node:url';
import type { CustomerPayer, Document } from '#gen/payments/v1/customer_payer_pb.js';
import { keyedHash } from '#src/keyed-hash.ts';

/** Keys of the hashes by which a payer's payments are found. */
export type PayerHashKeys = { readonly payerEmailKey: Uint8Array; readonly payerDocumentKey: Uint8Array };

/** Keyed hashes of a payer's data, in UUID form; undefined for data that the payment does not have. */
export type PayerHashes = {
  readonly payerEmailHash: string | undefined;
  readonly payerDocumentHash: string | undefined;
};

/**
 * Returns the hashes of a payment's payer. They differ by account, so that they link no payers of different merchants.
 * Only whoever has the key can test a guess, so they still count as personal data, and are erased with it.
 *
 * The normal forms are part of the stored hashes: another form needs another key, and both hashes in a search.
 *
 * @param country the payment's country, ISO 3166-1 alpha-2: the same number is another document elsewhere.
 */
export function payerHashes(
  keys: PayerHashKeys,
  accountId: string,
  country: string,
  { email, document }: Pick<CustomerPayer, 'email' | 'document'>,
): PayerHashes {
  const normalEmail = email === undefined ? undefined : normalizeEmail(email);
  const normalDocument = document && normalizeDocument(country, document);
  const hash = (key: Uint8Array, text: string | undefined) =>
    text === undefined ? undefined : keyedHash(key, `${accountId}\0${text}`);
  return {
    payerEmailHash: hash(keys.payerEmailKey, normalEmail),
    payerDocumentHash: hash(keys.payerDocumentKey, normalDocument),
  };
}

/**
 * Returns an e-mail address in lower case and NFC, its domain in ASCII (IDNA) without a final dot; undefined for a text
 * that is no address. Dots and `+tag` stay, since they may tell people apart.
 */
function normalizeEmail(email: string): string | undefined {
  const text = email.trim().normalize('NFC').toLowerCase();
  const domainAt = text.lastIndexOf('@') + 1;
  if (domainAt < 2) return undefined;
  const domain = text.slice(domainAt).replace(/\.$/, '');
  const ascii = IS_PLAIN.test(domain) ? domain : domainToASCII(domain);
  return ascii === '' ? undefined : text.slice(0, domainAt) + ascii;
}

/** A domain that is its own ASCII form, as nearly all are. */
const IS_PLAIN = /^[a-z0-9.-]+$/;

/**
 * Returns a document as its country, type and number, with capital letters and digits only; undefined without a number.
 * Leading zeros count.
 */
function normalizeDocument(country: string, { documentType, documentNumber }: Document): string | undefined {
  const [type, number] = [documentType, documentNumber].map((text) =>
    (text ?? '')
      .normalize('NFKC')
      .toUpperCase()
      .replaceAll(/[^\p{L}\p{N}]/gu, ''),
  );
  return number ? `${country}|${type}|${number}` : undefined;
}
