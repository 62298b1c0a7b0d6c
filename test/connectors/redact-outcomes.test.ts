import { create, type JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { redactOutcomes } from '#src/connectors/guards/redact-outcomes.ts';
import { CARDS_ONLY } from '#src/connectors/port/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import {
  cardAttempt,
  localAttempt,
  lookUpOf,
  lookUpOfOperation,
  operationOn,
  redirectAttempt,
  tokenAttempt,
} from './attempts.ts';

const NUMBER = '4012888888881881';
const ECHO = 'Approved 4012 8888 8888 1881 cvc 987';
const SHOWN = 'Approved [removed] cvc [removed]';

/** A connection to a provider that gives every call this outcome. */
function answering(outcome: Outcome): ProviderConnection {
  const connection: ProviderConnection = {
    identity: 'echo',
    environment: 'TEST',
    deadlineMs: 1_000,
    capabilities: CARDS_ONLY,
    pay: async () => outcome,
    capture: async () => outcome,
    cancel: async () => outcome,
    refund: async () => outcome,
    complete: async () => outcome,
    lookUp: async () => outcome,
    readNotification: async () => ({
      kind: 'about',
      deduplicationKey: '1',
      subjects: [
        { reference: 'a' },
        { transactionId: 'b', signed: { outcome, minorUnits: 1n, currency: 'USD' } },
      ],
    }),
    probe: undefined,
    readAccount: async () => ({ result: 'ACCEPTED', account: undefined, environment: 'TEST' }),
    close: async () => {},
  };
  return redactOutcomes(connection);
}

function dataWith(text: string, rawResponse: JsonObject) {
  return create(ProviderDataSchema, {
    id: 'ECHO',
    transactionId: text,
    accountId: text,
    status: text,
    subStatus: text,
    statusDetail: text,
    responseMessage: text,
    responseCode: text,
    thirdPartyTransactionId: text,
    thirdPartyAccountId: text,
    iso8583ResponseCode: text,
    iso8583ResponseMessage: text,
    rawResponse,
  });
}

const told = dataWith(ECHO, { text: ECHO, number: Number(NUMBER), nested: [{ [NUMBER]: '987' }] });
const shown = {
  ...dataWith(SHOWN, { text: SHOWN, number: '[removed]', nested: [{ '[removed]': '[removed]' }] }),
};

it.each<[Outcome, object]>([
  [
    { kind: 'approved', providerData: told, authorizationCode: ECHO, retrievalReferenceNumber: NUMBER },
    {
      kind: 'approved',
      providerData: shown,
      authorizationCode: SHOWN,
      retrievalReferenceNumber: '[removed]',
    },
  ],
  [
    { kind: 'awaits_payer', providerData: told, show: { page: 'https://provider.example/987654' } },
    { kind: 'awaits_payer', providerData: shown, show: { page: 'https://provider.example/987654' } },
  ],
  [
    { kind: 'pending', providerData: told },
    { kind: 'pending', providerData: shown },
  ],
  [
    { kind: 'declined', providerData: told, iso8583Code: '05', advice: 'NONE' },
    { kind: 'declined', providerData: shown, iso8583Code: '05', advice: 'NONE' },
  ],
  [
    { kind: 'unknown', providerData: told, detail: ECHO },
    { kind: 'unknown', providerData: shown, detail: SHOWN },
  ],
  [
    { kind: 'unknown', providerData: undefined, detail: 'silence' },
    { kind: 'unknown', providerData: undefined, detail: 'silence' },
  ],
  [
    { kind: 'not_sent', detail: ECHO, because: 'turned_away' },
    { kind: 'not_sent', detail: SHOWN, because: 'turned_away' },
  ],
])("no field of the outcome contains the attempt's card: $kind", async (outcome, expected) => {
  expect(await answering(outcome).pay(cardAttempt(NUMBER))).toEqual(expected);
});

it.each([`https://provider.example/?pan=4012%208888%208888%201881`, `https://provider.example/${NUMBER}`])(
  'the outcome is unknown, with an alarm, if a redirect contains the card',
  async (redirectUrl) => {
    const outcome: Outcome = { kind: 'awaits_payer', providerData: told, show: { page: redirectUrl } };
    const redacted = await answering(outcome).pay(cardAttempt(NUMBER));
    expect(redacted).toEqual({
      kind: 'unknown',
      detail: "alarm: the provider's redirect contains card data",
      providerData: shown,
      alarm: true,
    });
  },
);

describe('a redirect to a URL with a number of the provider that looks like a card number', () => {
  const page = 'https://provider.example/pages/6D50153977753371';
  const outcome: Outcome = { kind: 'awaits_payer', providerData: told, show: { page } };

  it.each([
    ['with a card', cardAttempt()],
    ['without a card', redirectAttempt()],
    ['with a local method', localAttempt({ type: 'PSE' })],
  ])('is shown to the payer of an attempt %s', async (_how, attempt) => {
    expect(await answering(outcome).pay(attempt)).toMatchObject({ kind: 'awaits_payer', show: { page } });
  });

  it('is shown after the look-up of an attempt without a card', async () => {
    const found = await answering(outcome).lookUp?.(lookUpOf(redirectAttempt()));
    expect(found).toMatchObject({ kind: 'awaits_payer', show: { page } });
  });

  it('is unknown after the look-up of an attempt by card, since the look-up does not have the card', async () => {
    const found = await answering(outcome).lookUp?.(lookUpOf(cardAttempt()));
    expect(found).toMatchObject({ kind: 'unknown', alarm: true });
  });
});

it('a long redirect URL is not truncated', async () => {
  const redirectUrl = `https://provider.example/?data=${'Ab-'.repeat(600)}`;
  const outcome: Outcome = { kind: 'awaits_payer', providerData: told, show: { page: redirectUrl } };
  expect(await answering(outcome).pay(redirectAttempt())).toMatchObject({
    kind: 'awaits_payer',
    show: { page: redirectUrl },
  });
});

describe('a call without a card', () => {
  const echoing = answering({ kind: 'pending', providerData: told, reference: '5555555555554444' });
  const operation = operationOn(cardAttempt(), undefined);
  const query = lookUpOfOperation('refund', operation);
  const expected = {
    kind: 'pending',
    providerData: { responseMessage: SHOWN, rawResponse: { number: '[removed]' } },
    // Data needed to act on the transaction stays, even if it looks like a card number.
    reference: '5555555555554444',
  };

  it.each(['capture', 'cancel', 'refund'] as const)(
    'a %s without a card shows no card data',
    async (name) => {
      const outcome = await echoing[name]?.(operation);
      expect(outcome).toMatchObject(expected);
      expect(JSON.stringify(outcome)).not.toMatch(/4012|1881/);
    },
  );

  it.each(['lookUp', 'complete'] as const)('a call without a card shows no card data: %s', async (name) => {
    expect(await echoing[name]?.(query)).toMatchObject(expected);
  });

  it('a signed notification shows no card data', async () => {
    const reading = await echoing.readNotification?.(
      { header: () => '', query: '', body: new Uint8Array() },
      0,
    );
    expect(reading).toMatchObject({
      kind: 'about',
      subjects: [
        { reference: 'a' },
        { transactionId: 'b', signed: { outcome: expected, minorUnits: 1n, currency: 'USD' } },
      ],
    });
  });
});

it('guarding a connection adds no methods', () => {
  const without = { lookUp: undefined, refund: undefined, readNotification: undefined };
  const inner = { ...answering({ kind: 'pending', providerData: told }), ...without };
  expect(redactOutcomes(inner)).toMatchObject(without);
});

describe('the token of a wallet', () => {
  const DATA = 'MIAGCSqGSIb3DQEHAqCAMIACAQExDTALBglghkgBZQMEAgEwgAYJKoZIhvcNAQcBAACg';
  const TOKEN = JSON.stringify({ paymentData: { data: DATA, version: 'EC_v1' } });
  const PIECE = DATA.slice(20, 40);

  it('no outcome of its attempt contains a piece of it, whether alone, within text, or escaped', async () => {
    const outcome: Outcome = {
      kind: 'approved',
      providerData: dataWith(`invalid: ${PIECE}.`, {
        echo: TOKEN,
        escaped: JSON.stringify(TOKEN),
        encoded: encodeURIComponent(TOKEN),
        [DATA]: [DATA, { inner: PIECE }],
      }),
      authorizationCode: DATA,
      retrievalReferenceNumber: PIECE,
      reference: `ch_${PIECE}`,
      card: { brand: PIECE, lastFour: '1111', expirationMonth: 12 },
    };
    const redacted = await answering(outcome).pay(tokenAttempt('APPLE_PAY', TOKEN));
    const text = JSON.stringify(redacted);
    for (let i = 0; i + 16 <= DATA.length; i++) expect(text).not.toContain(DATA.slice(i, i + 16));
    expect(redacted).toMatchObject({
      providerData: { id: 'ECHO', responseMessage: 'invalid: [removed].' },
      card: { brand: '[removed]', lastFour: '1111', expirationMonth: 12 },
    });
    // Another attempt does not have the token.
    expect(await answering(outcome).pay(cardAttempt())).toMatchObject({ authorizationCode: DATA });
  });

  it('a token of few characters is removed as a whole', async () => {
    const outcome: Outcome = { kind: 'unknown', detail: 'the token {"a":"sb"}.', providerData: undefined };
    expect(await answering(outcome).pay(tokenAttempt('APPLE_PAY', '{"a":"sb"}'))).toMatchObject({
      detail: 'the token [removed].',
    });
  });

  it('a redirect to a URL that contains a piece of it is unknown', async () => {
    const show = { page: `https://bank.example/${encodeURIComponent(DATA)}` };
    const outcome: Outcome = { kind: 'awaits_payer', providerData: dataWith('', {}), show };
    expect(await answering(outcome).pay(tokenAttempt('APPLE_PAY', TOKEN))).toMatchObject({ kind: 'unknown' });
  });
});
