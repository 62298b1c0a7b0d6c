import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { readSettings } from '#src/connectors/sandbox/settings.ts';
import { Secret } from '#src/secret.ts';

const secrets = { api_key: new Secret('sandbox_key') };
const base_url = 'http://127.0.0.1:8080/sandbox/';

it("the sandbox's settings are read, with defaults", () => {
  const settings = readSettings({ base_url }, secrets);
  expect(settings).toMatchObject({
    origin: 'http://127.0.0.1:8080',
    basePath: '/sandbox',
    timeoutMs: 10_000,
    acquirer: 'ONE',
    accountId: undefined,
  });
  expect(settings.apiKey.reveal()).toBe('sandbox_key');
});

it("the sandbox's base path is empty if the URL has none", () => {
  expect(readSettings({ base_url: 'https://provider.example' }, secrets)).toMatchObject({
    origin: 'https://provider.example',
    basePath: '',
  });
});

it("the sandbox's methods are its own, and those that the setting adds or overrides", () => {
  const { methods } = readSettings({ base_url, methods: { PIX_INSTANT: 'PIX', OXXO: 'EFECTY' } }, secrets);
  expect(methods).toMatchObject({ PIX: 'PIX', PIX_INSTANT: 'PIX', OXXO: 'EFECTY', BOLETO: 'BOLETO' });
});

describe('invalid settings of the sandbox', () => {
  const cases: [string, JsonObject, RegExp][] = [
    ['no base_url', {}, /base_url/],
    ['a base_url that is not a URL', { base_url: 'SECRET' }, /base_url/],
    ['a base_url of another scheme', { base_url: 'ftp://SECRET/' }, /base_url/],
    ['a base_url with a password', { base_url: 'http://a:SECRET@127.0.0.1/' }, /base_url/],
    ['a base_url with a query', { base_url: 'http://127.0.0.1/?SECRET' }, /base_url/],
    ['a timeout that is not a number', { base_url, timeout_ms: 'SECRET' }, /timeout_ms/],
    ['a timeout below 100 ms', { base_url, timeout_ms: 99 }, /timeout_ms/],
    ['a timeout above a minute', { base_url, timeout_ms: 60_001 }, /timeout_ms/],
    ['an acquirer that does not exist', { base_url, acquirer: 'SECRET' }, /acquirer/],
    ['an account_id that no header can contain', { base_url, account_id: 'SECRET\r\n' }, /account_id/],
    ['a method that the provider does not have', { base_url, methods: { X: 'SECRET' } }, /methods/],
    ['a setting that does not exist', { base_url, acquirrer: 'SECRET' }, /acquirrer/],
  ];
  for (const [name, settings, message] of cases) {
    it(`${name} is rejected with a message that names the setting but omits its value`, () => {
      expect(() => readSettings(settings, secrets)).toThrow(message);
      expect(() => readSettings(settings, secrets)).not.toThrow(/SECRET/);
    });
  }

  it('a missing or unusable api_key is rejected with a message that names it but omits its value', () => {
    expect(() => readSettings({ base_url }, {})).toThrow(/api_key/);
    expect(() => readSettings({ base_url }, { api_key: new Secret('SECRET\n') })).toThrow(/api_key/);
    expect(() => readSettings({ base_url }, { api_key: new Secret('SECRET\n') })).not.toThrow(/SECRET/);
  });
});
