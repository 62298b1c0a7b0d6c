import { describe, expect, it } from 'vitest';
import { MAGIC_CARDS } from '#sandbox/magic-cards.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { magic, read } from '../../sandbox/provider-under-test.ts';
import {
  additionalData,
  cardAttempt,
  enrollmentAttempt,
  redirectAttempt,
  SECURITY_CODE,
} from '../attempts.ts';
import { connect, onSandbox, provider } from './on-sandbox.ts';

describe('the sandbox connector', () => {
  onSandbox();

  function pay(attempt: PaymentAttempt, settings: object = {}): Promise<Outcome> {
    return connect(settings).pay(attempt);
  }

  it('the sandbox connector returns an approval without the full card number or the code', async () => {
    const attempt = cardAttempt();
    const outcome = await pay(attempt, { account_id: 'acct_7' });
    expect(outcome).toMatchObject({
      kind: 'approved',
      authorizationCode: expect.stringMatching(/^[A-Z0-9]{6}$/),
      retrievalReferenceNumber: expect.stringMatching(/^\d{12}$/),
      providerData: {
        id: 'SANDBOX_ONE',
        transactionId: expect.stringMatching(/^ch_/),
        accountId: 'acct_7',
        status: 'approved',
        subStatus: 'captured',
        responseCode: '00',
        responseMessage: 'Approved',
        iso8583ResponseCode: '00',
        iso8583ResponseMessage: 'Approved',
        rawResponse: { idempotency_key: attempt.transactionId, amount: 300_000, card_iin: '41111111' },
      },
    });
    expect(JSON.stringify(outcome)).not.toMatch(new RegExp(`4111111111111111|"${SECURITY_CODE}"`));
  });

  it.each([
    ['41111113', '', '1113'],
    ['41111111112', '411', '1112'],
    ['411111111111', '411111', '1111'],
  ])(
    'the sandbox connector hides at least four digits of a short card number, %s',
    async (number, cardIin, lastFour) => {
      const { providerData } = (await pay(cardAttempt(number))) as { providerData: { rawResponse: object } };
      expect(providerData.rawResponse).toMatchObject({ card_iin: cardIin, card_last_four: lastFour });
    },
  );

  it('the sandbox connector authorizes without a capture on request', async () => {
    const outcome = await pay(cardAttempt(undefined, {}, { capture: false }));
    expect(outcome).toMatchObject({ kind: 'approved', providerData: { subStatus: 'authorized' } });
  });

  it('the sandbox connector passes on order and airline data', async () => {
    const outcome = await pay(
      cardAttempt(undefined, {
        additionalData: additionalData({
          order: { items: [{ name: 'Mug', quantity: 2, unitAmount: { value: '7.50' } }] },
          airline: { pnr: 'ABC123', legs: [{ departureAirport: 'BOG' }, { departureAirport: 'MDE' }] },
        }),
      }),
    );
    expect(outcome).toMatchObject({
      providerData: { rawResponse: { order_item_count: 1, airline_leg_count: 2 } },
    });
  });

  it('the sandbox connector gives a wallet order the URL of its checkout page, and no card codes', async () => {
    const outcome = await pay(redirectAttempt());
    expect(outcome).toMatchObject({
      kind: 'awaits_payer',
      show: { page: expect.stringMatching(/^http:\/\/shop\.example\/sandbox\/checkout\/wo_[0-9a-f-]{36}$/) },
      providerData: { status: 'created' },
    });
    expect(JSON.stringify(outcome)).not.toContain('iso8583');
  });

  it('the sandbox connector leaves a wallet enrollment pending', async () => {
    expect(await pay(enrollmentAttempt())).toMatchObject({
      kind: 'pending',
      providerData: { status: 'pending' },
    });
  });

  it('a payment with a wrong API key at the sandbox is not_sent', async () => {
    expect(await connect({}, 'wrong').pay(cardAttempt())).toEqual({
      kind: 'not_sent',
      detail: 'the provider refused the request: 401',
      because: 'unreachable',
    });
  });

  it('a payment of an amount that JSON cannot represent is not_sent', async () => {
    expect(
      await pay(cardAttempt(undefined, { money: { minorUnits: 2n ** 53n, currency: 'CLF' } })),
    ).toMatchObject({
      kind: 'not_sent',
      because: 'turned_away',
    });
  });

  it("the sandbox connector's probe succeeds, fails with a wrong API key, and moves no money", async () => {
    const before = await read(provider.origin, '/v1/ledger');
    expect(before).toMatchObject({ object: 'ledger' });
    expect(await connect().probe?.()).toBe(true);
    expect(await connect({}, 'wrong').probe?.()).toBe(false);
    const account = { result: 'ACCEPTED', account: 'acct_sandbox', environment: 'TEST' };
    expect(await connect().readAccount()).toEqual(account);
    expect(await connect({ account_id: 'acct_7' }).readAccount()).toEqual({ ...account, account: 'acct_7' });
    expect(await connect({}, 'wrong').readAccount()).toMatchObject({ result: 'REFUSED' });
    expect(await read(provider.origin, '/v1/ledger')).toEqual(before);
  });

  for (const card of MAGIC_CARDS.filter(({ behaviour }) => behaviour.kind === 'decline')) {
    it(`a payment with ${card.number}, ${card.name}, is declined`, async () => {
      const code = card.behaviour.kind === 'decline' && card.behaviour.responseCode;
      expect(await pay(cardAttempt(card.number))).toMatchObject({
        kind: 'declined',
        iso8583Code: code,
        providerData: { status: 'declined', iso8583ResponseCode: code },
      });
    });
  }

  for (const name of ['NO_ANSWER', 'RESET_AFTER_CHARGE', 'ERROR_AFTER_CHARGE', 'UNREADABLE_ANSWER']) {
    it(`the outcome of a payment with ${name} is unknown, and the provider has the charge`, async () => {
      const attempt = cardAttempt(magic(name));
      const settings = name === 'NO_ANSWER' ? { timeout_ms: 2_000 } : {};
      expect(await pay(attempt, settings)).toMatchObject({ kind: 'unknown' });
      expect(await recorded(attempt)).toMatchObject({ status: 'approved', amount: 300_000 });
    });
  }

  it('a payment with CONNECTION_REFUSED is not_sent, and the provider does not record it', async () => {
    const attempt = cardAttempt(magic('CONNECTION_REFUSED'));
    expect(await pay(attempt)).toEqual({
      kind: 'not_sent',
      detail: 'the provider refused the request: 429',
      because: 'unreachable',
    });
    expect(await recorded(attempt)).toBeUndefined();
  });

  it('a payment with DECLINED_AT_ACQUIRER_ONE is declined at acquirer ONE and approved at TWO', async () => {
    const number = magic('DECLINED_AT_ACQUIRER_ONE');
    expect(await pay(cardAttempt(number))).toMatchObject({ kind: 'declined', iso8583Code: '05' });
    expect(await pay(cardAttempt(number), { acquirer: 'TWO' })).toMatchObject({ kind: 'approved' });
  });

  it('a payment with APPROVED_AFTER_DELAY is approved, or unknown after a shorter deadline', async () => {
    const number = magic('APPROVED_AFTER_DELAY');
    const impatient = cardAttempt(number);
    const [patientOutcome, impatientOutcome] = await Promise.all([
      pay(cardAttempt(number)),
      pay(impatient, { timeout_ms: 2_500 }),
    ]);
    expect(patientOutcome).toMatchObject({ kind: 'approved' });
    expect(impatientOutcome).toMatchObject({ kind: 'unknown' });
    await expect.poll(() => recorded(impatient)).toMatchObject({ status: 'approved' });
  });

  async function recorded(attempt: PaymentAttempt): Promise<unknown> {
    const response = await provider.get(`/v1/by-idempotency-key/${attempt.transactionId}`);
    const body: unknown = await response.json();
    return response.status === 404 ? undefined : body;
  }
});
