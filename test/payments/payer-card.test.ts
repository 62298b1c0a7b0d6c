import { create, toBinary } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import { Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import { readCard } from '#src/payments/create/payer-card.ts';
import type { ChosenMethod } from '#src/payments/create/payment-method.ts';
import { Secret } from '#src/secret.ts';

const NUMBER = '4539578763621486';
const options = { capture: true, installments: 1, verify: false, softDescriptor: '' };

it.each([
  ['', undefined],
  ['9417', '9417'],
])(
  'the record of a vaulted card omits the length of the security code "%s" sent with it, but the provider gets it',
  async (sent, given) => {
    const data = toBinary(CardDataSchema, create(CardDataSchema, { lfd: '1486', numberLength: 16 }));
    const vaultedToken = {
      ...{ id: 'token', type: 'CARD', card: { data, number: 'sealed' } },
      ...{ providerToken: undefined, connectionId: undefined, customerId: undefined },
    };
    const vault = { open: async () => new Secret(NUMBER), seal: refuse, reseal: refuse };
    const method = {
      ...{ kind: 'vaulted_card', type: 'CARD', workflow: Payment_Workflow.DIRECT },
      ...{ token: 'token', securityCode: sent, options },
    } as ChosenMethod;
    const deps = { vault, fingerprintKey: new Uint8Array(32) };
    const card = await readCard(deps, () => undefined, method, { vaultedToken }, 'account');
    expect(card?.data).toMatchObject({ lfd: '1486', numberLength: 16, securityCodeLength: 0 });
    expect(card?.attempt.number.reveal()).toBe(NUMBER);
    expect(card?.attempt.securityCode?.reveal()).toBe(given);
  },
);

const refuse = () => Promise.reject(new Error('nothing is sealed here'));
