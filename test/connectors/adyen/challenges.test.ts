import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { BrowserInfoSchema, CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { ThreeDSecureSchema } from '#gen/payments/v1/payment_method_pb.js';
import { isTechnicalCancelTaken } from '#src/connectors/adyen/from-provider.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { payersPage } from '#src/connectors/port/outcome.ts';
import { lookUpOf } from '../attempts.ts';
import { openedForEach } from '../under-test.ts';
import { BROWSER, cardWith, openAdyen, subjectOf } from './adyen-under-test.ts';

const adyen = openedForEach(openAdyen);

/** The fake's only or first payment. */
const thePayment = () => {
  const [payment] = adyen.fake.payments.values();
  if (!payment) throw new Error('there is no payment');
  return payment;
};
/** The only waiting notification, as the core gets it. */
const told = async () => subjectOf((await adyen.delivered())[0]);

describe('3-D Secure challenges at Adyen', () => {
  const customerPayer = create(CustomerPayerSchema, { firstName: 'Ana', browserInfo: BROWSER });
  const challenged = () => cardWith({ threeDSecureSetupId: randomUUID() }, { customerPayer });
  const completed = (attempt: PaymentAttempt, returnQuery: string) =>
    adyen.connection.complete?.(lookUpOf(attempt, { hint: { returnQuery } }));
  async function sentAway(attempt: PaymentAttempt): Promise<string> {
    const sent = await adyen.connection.pay(attempt);
    if (sent.kind !== 'awaits_payer') throw new Error(sent.kind);
    return payersPage(sent);
  }

  it("a payer who passes Adyen's challenge is charged when they return, and only once", async () => {
    const attempt = challenged();
    const returnQuery = adyen.fake.payAt(await sentAway(attempt), true);
    expect(thePayment().captured).toBe(0);
    const outcome = await completed(attempt, returnQuery);
    expect(outcome).toMatchObject({ kind: 'approved', reference: thePayment().pspReference });
    expect(await completed(attempt, returnQuery)).toEqual(outcome);
    expect(thePayment().captured).toBe(300_000);
  });

  it("a payer who fails Adyen's challenge is declined", async () => {
    const attempt = challenged();
    const returnQuery = adyen.fake.payAt(await sentAway(attempt), false);
    expect(await completed(attempt, returnQuery)).toMatchObject({ kind: 'declined', iso8583Code: '1A' });
  });

  it("an Adyen challenge accepts neither a forged result nor another payment's result", async () => {
    const [attempt, other] = [challenged(), challenged()];
    const url = await sentAway(attempt);
    const othersQuery = adyen.fake.payAt(await sentAway(other), true);
    expect(await completed(attempt, 'redirectResult=forged')).toMatchObject({ kind: 'not_sent' });
    expect(await completed(attempt, 'status=paid')).toMatchObject({ kind: 'not_sent' });
    expect(await completed(attempt, othersQuery)).toMatchObject({ kind: 'not_sent' });
    expect(await completed(attempt, adyen.fake.payAt(url, true))).toMatchObject({ kind: 'approved' });
  });

  it("a challenge whose details get no response has an unknown outcome until Adyen's notification reports it", async () => {
    const attempt = challenged();
    const returnQuery = adyen.fake.payAt(await sentAway(attempt), true);
    adyen.fake.next('lost_answer');
    expect(await completed(attempt, returnQuery)).toMatchObject({ kind: 'unknown' });
    expect(await told()).toMatchObject({ signed: { outcome: { kind: 'approved' } } });
  });

  it('nothing is sent to Adyen if a challenge may be needed and the browser is unknown', async () => {
    const attempt = cardWith({ threeDSecureSetupId: randomUUID() });
    expect(await adyen.connection.pay(attempt)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(adyen.fake.requests).toEqual([]);
  });

  it.each([
    ['nothing', undefined, 'accept_header user_agent language color_depth screen_height screen_width'],
    ['all', BROWSER, ''],
    ['no language', { ...BROWSER, language: '' }, 'language'],
    [
      'a depth that is not a number',
      { ...BROWSER, colorDepth: 'deep', screenWidth: '0' },
      'color_depth screen_width',
    ],
  ])(
    'an Adyen challenge requires the missing browser fields if the request has %s',
    (_what, known, missing) => {
      const browser = known && create(BrowserInfoSchema, known);
      const { missingForChallenge } = adyen.connection.capabilities;
      expect(missingForChallenge?.(browser).join(' ')).toBe(missing);
    },
  );
});

describe('external 3-D Secure results at Adyen', () => {
  it.each([
    ['1.0.2', { xid: 'MDAwMQ==' }],
    ['2.2.0', { dsTransID: 'c4e59ceb' }],
  ])(
    'external 3-D Secure results of version %s are sent to Adyen with the ID that issuers need: %j',
    async (version, id) => {
      const ids = 'xid' in id ? { transactionId: id.xid } : { directoryServerTransactionId: id.dsTransID };
      const both = { transactionId: 'server', ...ids };
      await adyen.connection.pay(
        cardWith({ threeDSecure: create(ThreeDSecureSchema, { version, ...both }) }),
      );
      const { mpiData } = adyen.fake.requests[0]?.body ?? {};
      expect(mpiData).toEqual({ threeDSVersion: version, ...id });
    },
  );
});

describe('a technical cancel at Adyen', () => {
  const canceled = (attempt: PaymentAttempt) => adyen.connection.technicalCancel?.send(lookUpOf(attempt));

  it('a technical cancel undoes an authorization whose response was lost, and Adyen reports this', async () => {
    const attempt = cardWith({ capture: false });
    adyen.fake.next('lost_answer');
    await adyen.connection.pay(attempt);
    adyen.fake.notifications.length = 0;
    expect(await canceled(attempt)).toBe(true);
    expect(thePayment().state).toBe('cancelled');
    const { transactionId } = attempt;
    expect(await told()).toMatchObject({ transactionId, signed: { outcome: { kind: 'declined' } } });
  });

  it('a technical cancel of a payment that Adyen never received leaves the outcome open', async () => {
    expect(await canceled(cardWith())).toBe(true);
    expect(await adyen.delivered()).toMatchObject([{ kind: 'ignored' }]);
  });

  it('a technical cancel that Adyen does not accept returns false', async () => {
    adyen.fake.next('error');
    expect(await canceled(cardWith())).toBe(false);
  });

  it.each([
    ['another payment', { paymentReference: randomUUID() }, false],
    ['another merchant account', { merchantAccount: 'AnotherShop' }, false],
    ['another status', { status: 'refused' }, false],
    ['this payment', {}, true],
  ])(
    'a technical cancel is considered accepted only if the response matches it: %s',
    (_, change, isAccepted) => {
      const transactionId = randomUUID();
      const response = { paymentReference: transactionId, merchantAccount: 'ShopECOM', status: 'received' };
      const body = Buffer.from(JSON.stringify({ ...response, ...change }));
      const result = { kind: 'answer', status: 201, headers: {}, body } as const;
      const shownAs = { providerId: 'ADYEN', merchantAccount: 'ShopECOM' };
      expect(isTechnicalCancelTaken(result, transactionId, shownAs)).toBe(isAccepted);
    },
  );
});
