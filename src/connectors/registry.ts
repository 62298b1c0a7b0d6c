import type { Connector } from './connector.ts';
import { sandboxConnector } from './sandbox/connector.ts';

/** Every connector that a catalogue's connection may name. */
export const CONNECTORS: readonly Connector[] = [sandboxConnector];
