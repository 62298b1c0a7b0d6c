import { expect, it } from 'vitest';
import { adyenConnector } from '#src/connectors/adyen/connector.ts';
import { environmentAt } from '#src/connectors/kit/account-report.ts';
import { paypalConnector } from '#src/connectors/paypal/connector.ts';

it.each([
  [adyenConnector, 'https://checkout-test.adyen.com', 'TEST'],
  [adyenConnector, 'https://1797a841fbb37ca7-AdyenDemo-checkout-live.adyenpayments.com', 'LIVE'],
  [adyenConnector, 'https://checkout-live.adyenpayments.com', undefined],
  [adyenConnector, 'https://-checkout-live.adyenpayments.com', undefined],
  [adyenConnector, 'https://evil.example-checkout-live.adyenpayments.com', undefined],
  [adyenConnector, 'https://a-checkout-live.adyenpayments.com.evil.example', undefined],
  [paypalConnector, 'https://api-m.sandbox.paypal.com', 'TEST'],
  [paypalConnector, 'https://api-m.paypal.com', 'LIVE'],
  [paypalConnector, 'https://api-m.paypal.com:8443', undefined],
  [paypalConnector, 'http://api-m.paypal.com', undefined],
  [paypalConnector, 'no address', undefined],
])('the environment of %o at %s is %s', ({ hosts }, address, environment) => {
  expect(environmentAt(hosts, address)).toBe(environment);
});
