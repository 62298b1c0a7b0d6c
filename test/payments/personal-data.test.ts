import { create, type DescMessage, equals, type MessageShape } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { expect, it } from 'vitest';
import { type Payment, PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { withoutPersonalData } from '#src/payments/personal-data.ts';

type Kind = 'card' | 'wallet' | 'bank_transfer' | 'ticket';

/** A message with all of its fields set, with the given kind of payment method. */
function full<Desc extends DescMessage>(schema: Desc, kind: Kind): MessageShape<Desc> {
  const message = create(schema);
  const fields = reflect(schema, message);
  for (const field of schema.fields) {
    if (field.oneof?.name === 'kind' && field.name !== kind && field.name !== 'string_value') continue;
    const nested = (desc: DescMessage) => reflect(desc, full(desc, kind));
    if (field.fieldKind === 'message') fields.set(field, nested(field.message));
    else if (field.fieldKind === 'enum') fields.set(field, 1);
    else if (field.fieldKind === 'scalar') {
      const { localName } = field;
      const value = create(schema, { [localName]: undefined } as never);
      const zero = reflect(schema, value).get(field);
      const set = { string: 'personal', number: 7, bigint: 7n, boolean: true } as Record<string, unknown>;
      fields.set(field, (set[typeof zero] ?? zero) as never);
    } else if (field.fieldKind === 'list' && field.listKind === 'message') {
      fields.get(field).add(nested(field.message) as never);
    }
  }
  return message;
}

/** The paths of all set fields, down to messages of other packages. */
function pathsOf(message: ReflectMessage, prefix = ''): string[] {
  return message.fields.flatMap((field) => {
    if (!message.isSet(field)) return [];
    const path = `${prefix}${field.name}`;
    const isOurs = field.message?.typeName.startsWith('payments.v1.');
    if (field.fieldKind === 'message' && isOurs) return [path, ...pathsOf(message.get(field), `${path}.`)];
    if (field.fieldKind === 'list' && isOurs) {
      return [path, ...[...message.get(field)].flatMap((one) => pathsOf(one as ReflectMessage, `${path}.`))];
    }
    return [path];
  });
}

const paths = (record: Payment) => pathsOf(reflect(PaymentSchema, record));
const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('.')));

const OF_CARD_DATA = [
  ...['holder_name', 'three_d_secure.cryptogram', 'three_d_secure.transaction_id'],
  ...[
    'three_d_secure.directory_server_transaction_id',
    'three_d_secure.pares_status',
    'three_d_secure.acs_id',
  ],
  ...['fingerprint', 'expiration_month', 'expiration_year'],
].map((name) => `card_data.${name}`);
const OF_METHOD = {
  card: ['voucher', ...OF_CARD_DATA, 'redirect_url'],
  wallet: ['payment_method_detail', 'customer_data', ...OF_CARD_DATA, 'redirect_url'],
  bank_transfer: [
    ...['provider_image', 'account_type', 'bank_id', 'beneficiary_name', 'beneficiary_document_type'],
    ...['beneficiary_document', 'payment_instruction', 'redirect_url', 'document_url'],
  ],
  ticket: ['benefit_type', 'payment_instruction', 'provider_logo', 'redirect_url', 'document_url'],
} satisfies Record<Kind, string[]>;
const within = (path: string, names: readonly string[]) => names.map((name) => `${path}.${name}`);

// Decide about each new field of the record: keep it by naming it in
// src/payments/personal-data.ts, or list it here.
it.each(['card', 'wallet', 'bank_transfer', 'ticket'] as const)(
  'an erasure removes exactly the listed fields of a %s payment',
  (kind) => {
    const record = full(PaymentSchema, kind);
    const erased = withoutPersonalData(record);
    const left = new Set(paths(erased));
    const gone = paths(record).filter((path) => !left.has(path));
    // A message that is erased as a whole is listed only by its own name.
    const roots = gone.filter((path) => parentOf(path) === '' || left.has(parentOf(path)));
    const ofTransaction = [
      ...within('payment_method', ['token', ...within(`detail.${kind}`, OF_METHOD[kind])]),
      ...['reason', 'description'],
      ...within('provider_data', ['raw_response', 'third_party_account_id']),
      'device_fingerprint',
    ];
    expect(roots).toEqual([
      'description',
      'amount.currency_conversion',
      ...within('payment_method', ['token', ...within(`payment_method_detail.${kind}`, OF_METHOD[kind])]),
      ...within('customer_payer', [
        ...[
          'merchant_customer_id',
          'first_name',
          'last_name',
          'gender',
          'date_of_birth',
          'email',
          'nationality',
        ],
        ...['country', 'ip_address', 'device_fingerprint', 'device_fingerprints', 'document', 'phone'],
        ...['billing_address', 'shipping_address'],
        ...within('browser_info', [
          ...['user_agent', 'accept_header', 'color_depth', 'screen_height', 'screen_width', 'language'],
          ...['accept_content', 'accept_browser', 'javascript_enabled', 'java_enabled'],
          ...['browser_time_difference', 'platform'],
        ]),
        'merchant_customer_created_at',
      ]),
      ...['additional_data', 'taxes'],
      ...within('transactions', ofTransaction),
      ...within('transactions_history', ofTransaction),
      ...['split', 'callback_url', 'metadata', 'fraud_screening', 'taxes_list'],
    ]);
  },
);

it('a record without personal data is not changed by erasing it again', () => {
  const erased = withoutPersonalData(full(PaymentSchema, 'card'));
  expect(equals(PaymentSchema, withoutPersonalData(erased), erased)).toBe(true);
});
