import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { payerHashes } from '#src/payments/payer-hashes.ts';

const KEYS = { payerEmailKey: Buffer.alloc(32, 1), payerDocumentKey: Buffer.alloc(32, 2) };
const ACCOUNT = '11111111-1111-4111-8111-111111111111';

const emailHash = (email: string, keys = KEYS, accountId = ACCOUNT) =>
  payerHashes(keys, accountId, 'US', create(CustomerPayerSchema, { email })).payerEmailHash;
const documentHash = (documentNumber: string, documentType?: string, country = 'BR') => {
  const payer = create(CustomerPayerSchema, { document: { documentNumber, documentType } });
  return payerHashes(KEYS, ACCOUNT, country, payer).payerDocumentHash;
};

it('the hash of an e-mail address is shaped like a UUID, and does not depend on its spelling', () => {
  const hash = emailHash('jose.munoz@bücher.example');
  expect(hash).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  for (const spelling of [
    ' Jose.Munoz@Bücher.example ',
    'JOSE.MUNOZ@BÜCHER.EXAMPLE',
    'jose.munoz@xn--bcher-kva.example',
    'jose.munoz@bu\u0308cher.example.',
  ]) {
    expect(emailHash(spelling), spelling).toBe(hash);
  }
});

it('different people, accounts and keys have different hashes', () => {
  const other = { ...KEYS, payerEmailKey: Buffer.alloc(32, 3) };
  const hashes = [
    ...['ana@example.com', 'a.na@example.com', 'ana+shop@example.com', 'ana@example.org'].map((email) =>
      emailHash(email),
    ),
    emailHash('ana@example.com', KEYS, '22222222-2222-4222-8222-222222222222'),
    emailHash('ana@example.com', other),
  ];
  expect(new Set(hashes).size).toBe(6);
});

it('a text that is no address, and a document without a number, have no hash', () => {
  for (const text of ['', 'ana', '@example.com', 'ana@', 'ana@xn--\u00e4', ' ']) {
    expect(emailHash(text), text).toBeUndefined();
  }
  for (const text of ['', '--', ' . ']) expect(documentHash(text, 'CPF'), text).toBeUndefined();
  expect(payerHashes(KEYS, ACCOUNT, 'BR', create(CustomerPayerSchema))).toEqual({
    payerEmailHash: undefined,
    payerDocumentHash: undefined,
  });
});

it('the hash of a document depends on its country, type, and capital letters and digits only', () => {
  const hash = documentHash('017.334.902-k', 'cpf');
  expect(documentHash('017334902K', 'C.P.F.')).toBe(hash);
  const others = [
    documentHash('17334902K', 'CPF'),
    documentHash('017334902K', 'CNPJ'),
    documentHash('017334902K', 'CPF', 'AR'),
    documentHash('017334902K'),
  ];
  expect(new Set([hash, ...others]).size).toBe(5);
});
