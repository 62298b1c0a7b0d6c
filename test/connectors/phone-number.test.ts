import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { phoneNumberOf } from '#src/connectors/kit/phone-number.ts';

it.each([
  ['57', '3001234567', '+573001234567'],
  ['+57', '3001234567', '+573001234567'],
  ['0057', '300 123-4567', '+573001234567'],
  ['57', '+57 300 1234567', '+573001234567'],
  ['+57', '+573001234567', '+573001234567'],
  ['57', '00573001234567', '+573001234567'],
  ['57', '573001234567', '+573001234567'],
  ['1', '12025550123', '+12025550123'],
  ['1', '(202) 555-0123', '+12025550123'],
  ['', '+442079460018', '+442079460018'],
  // Santa Maria has the area code 55, which is also Brazil's country code.
  ['55', '55991234567', '+5555991234567'],
  ['55', '5555991234567', '+5555991234567'],
  // A national number that begins with India's country code.
  ['91', '9123456789', '+919123456789'],
  ['', '3001234567', '3001234567'],
  ['57', 'none', undefined],
  ['57', '', undefined],
])(
  'the phone number of country code %j and number %j has a plus and one country code',
  (countryCode, number, sent) => {
    expect(phoneNumberOf(create(CustomerPayerSchema, { phone: { countryCode, number } }))).toBe(sent);
  },
);

it('a payer without a phone has no phone number', () => {
  expect(phoneNumberOf(create(CustomerPayerSchema))).toBeUndefined();
});
