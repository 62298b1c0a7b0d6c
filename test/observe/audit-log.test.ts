import { describe, expect, it } from 'vitest';
import { PROTOCOLS } from '../support/api-clients.ts';
import { clients, onService, server } from '../support/on-service.ts';
import {
  ACCOUNT_ONE,
  cardPayment,
  headersOne,
  VAULTED_CARD,
  withField,
} from '../support/payment-requests.ts';

onService();

const logged = (msg: string) =>
  server.logLines.map((line) => JSON.parse(line)).filter((line) => line.msg === msg);

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe.each(PROTOCOLS)('the log of requests over %s', (protocol) => {
  it('a failed authentication is logged with its address and its account, if known, but without any key', async () => {
    const before = logged('authentication failed').length;
    const wrong = { ...headersOne(), 'private-secret-key': 'sk_a_wrong_guess' };
    await clients.create(protocol, cardPayment(), wrong);
    // A caller who swaps the keys sends the secret as the public key.
    const swapped = {
      ...headersOne(),
      'public-api-key': 'sk_sandbox_one',
      'private-secret-key': 'pk_sandbox_one',
    };
    await clients.create(protocol, cardPayment(), swapped);
    const [known, unknown, ...more] = logged('authentication failed').slice(before);
    expect(known).toMatchObject({
      level: 40,
      time: TIME,
      account_id: ACCOUNT_ONE,
      remote_address: '127.0.0.1',
    });
    expect(known.request_id).toMatch(/^[0-9a-f]{24}$/);
    expect(unknown).toMatchObject({ remote_address: '127.0.0.1' });
    expect(unknown).not.toHaveProperty('account_id');
    expect(more).toEqual([]);
    expect(server.logLines.join()).not.toMatch(/sk_|pk_/);
  });

  it('a refused call is logged with its code, its account and the last four characters of its public key, if that is no secret', async () => {
    const before = server.logLines.length;
    const refused = (code: string) =>
      server.logLines
        .slice(before)
        .map((line) => JSON.parse(line))
        .filter((line) => line.msg === 'request' && line.code === code);
    const own = { account_id: ACCOUNT_ONE, public_key_ends_with: '_one' };
    await clients.create(protocol, withField(cardPayment(), 'country', 'XX'), headersOne());
    await expect.poll(() => refused('INVALID_PARAMETERS')).toMatchObject([own]);
    const unknown = { ...headersOne(), 'x-idempotency-key': '' };
    await clients.create(protocol, cardPayment(), unknown);
    await expect.poll(() => refused('IDEMPOTENCY_KEY_MISSING')).toMatchObject([own]);
    await clients.create(protocol, cardPayment(), { ...headersOne(), 'private-secret-key': 'sk_wrong' });
    await expect.poll(() => refused('INVALID_CREDENTIALS')).toMatchObject([own]);
    const swapped = { ...headersOne(), 'public-api-key': 'sk_sandbox_one' };
    await clients.create(protocol, cardPayment(), swapped);
    await expect.poll(() => refused('INVALID_CREDENTIALS')).toHaveLength(2);
    expect(refused('INVALID_CREDENTIALS')[1]).not.toHaveProperty('public_key_ends_with');
    const mistyped = { ...headersOne(), 'public-api-key': 'pk_mistyped' };
    await clients.create(protocol, cardPayment(), mistyped);
    await expect
      .poll(() => refused('INVALID_CREDENTIALS')[2])
      .toMatchObject({ public_key_ends_with: 'yped' });
  });

  it('a payment is logged with its account and status, in the line of its request', async () => {
    const reply = await clients.create(protocol, cardPayment('4000000000000002'), headersOne());
    const { id } = JSON.parse(reply.record);
    const made = () => logged('payment made').filter((line) => line.payment_id === id);
    await expect.poll(made).toMatchObject([
      {
        ...{ time: TIME, account_id: ACCOUNT_ONE, payment_status: 'DECLINED' },
        ...{
          method: 'POST',
          status: expect.any(Number),
          remote_address: '127.0.0.1',
          ms: expect.any(Number),
        },
      },
    ]);
  });

  it('a provider’s response with a different amount is logged with its transaction', async () => {
    const wrong = withField(cardPayment(), 'description', 'sandbox:wrong_amount');
    const { transactions } = JSON.parse((await clients.create(protocol, wrong, headersOne())).record);
    const about = (msg: string) => logged(msg).filter((line) => line.transaction_id === transactions.id);
    await expect.poll(() => about("a provider's response needs manual review")).toHaveLength(1);
    await expect.poll(() => about('the outcome of a provider call is unknown')).toHaveLength(1);
  });

  it('responses and refusals forbid caching and content sniffing', async () => {
    for (const headers of [headersOne(), {}]) {
      const reply = await clients.create(protocol, cardPayment(), headers);
      expect(reply.headers.get('cache-control')).toBe('no-store');
      expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
      expect(reply.headers.get('access-control-allow-origin')).toBeNull();
    }
  });
});

describe('the log of vault use', () => {
  it('sealing a card number is logged with its token', async () => {
    const reply = await clients.create(
      'rest',
      withField(cardPayment(), 'payment_method.vault_on_success', true),
      headersOne(),
    );
    const token = JSON.parse(reply.record).payment_method.vaulted_token;
    expect(logged('card number sealed')).toMatchObject([{ time: TIME, token }]);
  });

  it('opening a card number is logged with its token', async () => {
    const request = withField(
      withField(cardPayment(), 'payment_method.detail', undefined),
      'payment_method.vaulted_token',
      VAULTED_CARD,
    );
    expect((await clients.create('rest', request, headersOne())).status).toBe(201);
    expect(logged('card number opened')).toMatchObject([{ time: TIME, token: VAULTED_CARD }]);
  });
});
