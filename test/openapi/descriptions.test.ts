import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { EVENT_TYPES } from '#src/webhooks/events.ts';

// biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document, read by property names.
type Json = any;

const document: Json = JSON.parse(readFileSync('gen/openapi.json', 'utf8'));

it('every property of every schema has a description', () => {
  expect(Object.keys(document.components.schemas).length).toBeGreaterThan(50);
  expect(undescribed(document.components.schemas)).toEqual([]);
});

it('every parameter of every operation has a description', () => {
  const operations: Json[] = Object.values(document.paths).flatMap((path: Json) => Object.values(path));
  const names = operations.flatMap(({ operationId, parameters = [] }) =>
    parameters
      .filter((one: Json) => one.$ref === undefined && !one.description)
      .map((one: Json) => `${operationId}: ${one.name}`),
  );
  expect(names).toEqual([]);
});

it('the contract states the 404 of a search, the members of a card that a call needs, and the names of events', () => {
  const { paths, components } = document;
  expect(paths['/v1/customers'].get.responses).toHaveProperty('404');
  const required = ['number', 'expiration_month', 'expiration_year'];
  const { CreateTokenRequest, EnrollPaymentMethodRequest, CheckoutTokenCard, CardDataInput } =
    components.schemas;
  expect(CreateTokenRequest.properties.card_data.required).toEqual(required);
  expect(EnrollPaymentMethodRequest.properties.card_data.anyOf[0].required).toEqual(required);
  expect(CheckoutTokenCard.required).toEqual(required);
  // With a vaulted_token, a payment's card data is only a security code.
  expect(CardDataInput.required).toBeUndefined();
  for (const name of ['CreateWebhookRequest', 'UpdateWebhookRequest', 'Webhook']) {
    expect(components.schemas[name].properties.events.items.enum).toEqual(EVENT_TYPES);
  }
});

it('the check finds a property without a description at any depth', () => {
  const schema = { properties: { a: { description: 'A.', properties: { b: {} } } } };
  expect(undescribed({ S: schema })).toEqual(['S.a.b']);
});

/** Returns the paths of properties without a description. */
function undescribed(schemas: Json, path = ''): string[] {
  return Object.entries<Json>(schemas).flatMap(([name, schema]) => {
    const properties = Object.entries<Json>(schema.properties ?? {});
    return properties.flatMap(([property, content]) => [
      ...(content.description ? [] : [`${path}${name}.${property}`]),
      ...undescribed({ [property]: content }, `${path}${name}.`),
    ]);
  });
}
