import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { openConnection } from '#src/payments/route/live-catalogue.ts';
import { overloadErrors } from '#src/service-error.ts';
import type { PreparedPayment } from './prepare-payment.ts';

/** A payment's slot at the connection of its current attempt. */
export type ConnectionSlot = {
  /**
   * Takes a slot of the next attempt's connection instead. @returns false, keeping the current slot, if none is free.
   */
  moveTo(connection: ProviderConnection): boolean;
  /** Releases the slot once the attempts are over, or if the payment was not claimed. */
  release(): void;
};

const tooMany = overloadErrors(
  'too many payments are waiting for their provider; nothing was sent; retry later',
);

/**
 * Acquires a slot at a payment's first connection, before its key is claimed. The router has preferred connections with
 * a free slot, so if this one has none, neither do the route's others.
 *
 * @throws OverloadError if no slot is free.
 */
export function acquireSlot({ catalogue, claim }: PreparedPayment): ConnectionSlot {
  let release = takeSlot(openConnection(catalogue, claim.connectionId));
  if (!release) throw tooMany();
  return {
    moveTo(connection) {
      const next = takeSlot(connection);
      if (!next) return false;
      release?.();
      release = next;
      return true;
    },
    release: () => release?.(),
  };
}

const NOTHING = () => {};

/** A connection without a limit always has a slot. */
function takeSlot({ slots }: ProviderConnection): (() => void) | undefined {
  return slots ? slots.take() : NOTHING;
}
