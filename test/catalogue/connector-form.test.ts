import { isFieldSet } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  type ConnectorField,
  ConnectorFieldSchema,
  ConnectorFormSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import { connectorForm } from '#src/catalogue/connector-form.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';

const forms = CONNECTORS.map(connectorForm);
const fields = forms.flatMap(({ name, fields }) => fields.map((field) => ({ ...field, of: name })));
const find = (of: string, name: string) => fields.find((one) => one.of === of && one.name === name);
const encode = jsonEncoder(ConnectorFormSchema);

describe('the forms of the connectors', () => {
  it('every field of a form has a label, an explanation and a pattern that is a regular expression', () => {
    for (const { of, name, label, help, pattern } of fields) {
      expect(label, `${of} ${name}`).toMatch(/^[A-Z][\w ().-]+$/);
      expect(help, `${of} ${name}`).toMatch(/\.$/);
      expect(() => new RegExp(pattern), `${of} ${name}`).not.toThrow();
    }
  });

  it('the explanation of a field names its default', () => {
    const withDefault = fields.filter(({ default: value }) => value !== undefined);
    expect(withDefault.map(({ of, name }) => `${of} ${name}`)).toEqual([
      ...['adyen timeout_ms', 'adyen technical_cancel_minutes'],
      ...['mercado-pago base_url', 'mercado-pago timeout_ms'],
      ...['paypal base_url', 'paypal timeout_ms'],
      ...['sandbox timeout_ms', 'sandbox acquirer'],
      ...['stripe base_url', 'stripe timeout_ms', 'stripe request_three_d_secure'],
    ]);
    for (const { help, default: value } of withDefault) expect(help).toContain(String(value?.kind.value));
  });

  it.each<[string, string, Partial<ConnectorField>]>([
    ['adyen', 'merchant_account', { kind: 'TEXT', required: true, pattern: '^[A-Za-z0-9_.-]{1,100}$' }],
    ['adyen', 'methods', { kind: 'MAP', required: false, pattern: '^[a-z0-9_]{1,64}$' }],
    ['adyen', 'technical_cancel_minutes', { kind: 'NUMBER', min: 5, max: 10_080 }],
    [
      'adyen',
      'hmac_key',
      { kind: 'SECRET', required: true, pattern: '^[0-9A-Fa-f]{64}$', label: 'HMAC key' },
    ],
    [
      'adyen',
      'base_url',
      { required: true, pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$', label: 'Base URL' },
    ],
    ['mercado-pago', 'country', { required: true, pattern: '^(AR|BR|CL|CO|MX|PE|UY)$' }],
    ['mercado-pago', 'binary_mode', { kind: 'FLAG', required: false, pattern: '' }],
    ['mercado-pago', 'excluded_payment_types', { kind: 'LIST', pattern: '^[a-z_]{1,32}$' }],
    ['paypal', 'webhook_ids', { kind: 'LIST', pattern: '^[A-Za-z0-9]{1,50}$', max: 2 }],
    ['paypal', 'brand_name', { kind: 'TEXT', pattern: '', min: 1, max: 127 }],
    ['sandbox', 'notification_secret', { kind: 'SECRET', required: false, min: 16 }],
    ['sandbox', 'methods', { kind: 'MAP', pattern: '^(PIX|BOLETO|OXXO|SPEI|PSE|EFECTY)$' }],
    ['stripe', 'request_three_d_secure', { kind: 'TEXT', pattern: '^(automatic|any)$' }],
    ['stripe', 'timeout_ms', { kind: 'NUMBER', min: 100, max: 60_000, label: 'Timeout (ms)' }],
  ])('the form of %s describes %s', (of, name, shown) => {
    expect(find(of, name)).toMatchObject(shown);
  });

  it('a form has every setting and every secret of its connector, and no value of a secret', () => {
    for (const [at, { settings }] of CONNECTORS.entries()) {
      const names = forms[at]?.fields.map(({ name }) => name);
      expect(names?.toSorted()).toEqual(settings.schema.fields.map(({ name }) => name).toSorted());
    }
    const secrets = fields.filter(({ kind }) => kind === 'SECRET');
    expect(secrets.some((field) => isFieldSet(field, ConnectorFieldSchema.field.default))).toBe(false);
    expect(secrets.every(({ help }) => help !== '')).toBe(true);
  });

  it('a form names the hosts and the capabilities', () => {
    const [adyen] = forms;
    expect(adyen && JSON.parse(encode(adyen))).toMatchObject({
      name: 'adyen',
      test_hosts: ['checkout-test.adyen.com'],
      live_hosts: ['*-checkout-live.adyenpayments.com'],
      capabilities: [
        ...['CARD', 'AUTHORIZATION', 'CANCEL', 'REFUND', 'SEVERAL_REFUNDS', 'VERIFICATION', 'CHALLENGE'],
        ...['EXTERNAL_THREE_D_SECURE', 'STORED_CREDENTIALS', 'SOFT_DESCRIPTOR'],
      ],
    });
  });
});
