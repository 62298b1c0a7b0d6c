import { adyenConnector } from '#src/connectors/adyen/connector.ts';
import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import { paypalConnector } from '#src/connectors/paypal/connector.ts';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { stripeConnector } from '#src/connectors/stripe/connector.ts';
import type { Connector } from './port/connector.ts';

/** Every connector that a catalogue's connection may name. */
export const CONNECTORS: readonly Connector[] = [
  adyenConnector,
  mercadoPagoConnector,
  paypalConnector,
  sandboxConnector,
  stripeConnector,
];
