import { describe, expect, it } from 'vitest';
import { PROTOCOLS } from '../support/api-clients.ts';
import { clients, onService } from '../support/on-service.ts';
import {
  cardPayment,
  headersOne,
  type RequestJson,
  walletPayment,
  withField,
} from '../support/payment-requests.ts';

onService();

describe('unsupported fields in the detail of a payment method', () => {
  it.each([
    ['network_token', { number: '1' }],
    ['external_providers_data', { risk: { id: 1 } }],
    ['expires_at', '2030-01-31T09:08:07Z'],
    ['domain_url', 'shop.example'],
    ['fraud_screening', { stand_alone: true }],
    ['delayed_capture_settings', { delay: 'P3D' }],
    ['delayed_cancel_settings', { delay: 'P3D' }],
  ])(
    'the refusal of the unsupported wallet field %s names the field, over every protocol',
    async (name, value) => {
      const field = `payment_method.detail.wallet.${name}`;
      for (const protocol of PROTOCOLS) {
        const reply = await clients.create(protocol, withField(walletPayment(), field, value), headersOne());
        expect([protocol, reply.reason, reply.fields[0]?.field]).toEqual([protocol, 'NOT_SUPPORTED', field]);
      }
    },
  );

  it('the unknown kind of detail split is refused in JSON unless its values are empty', async () => {
    const field = 'payment_method.detail.split';
    const asking = withField(cardPayment(), field, { provider: { id: '7391' } });
    const asksForNothing = withField(cardPayment(), field, { provider: { id: '' }, verify: false });
    const body = (request: RequestJson) => JSON.stringify(request);
    for (const protocol of ['rest', 'connectJson'] as const) {
      const refusal = await clients.send(protocol, body(asking), headersOne());
      expect([refusal.reason, refusal.fields[0]?.field]).toEqual(['NOT_SUPPORTED', field]);
      expect(refusal.raw).not.toContain('7391');
      expect((await clients.send(protocol, body(asksForNothing), headersOne())).reason).toBeUndefined();
    }
  });

  it('the refusal of a detail whose name could be a secret names only its parent', async () => {
    const request = withField(cardPayment(), 'payment_method.detail.4012888888881881', { a: 1 });
    const { reason, fields, raw } = await clients.send('rest', JSON.stringify(request), headersOne());
    expect([reason, fields[0]?.field]).toEqual(['NOT_SUPPORTED', 'payment_method.detail']);
    expect(raw).not.toContain('4012888888881881');
  });
});
