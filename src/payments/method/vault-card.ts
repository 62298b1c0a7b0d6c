import { toBinary } from '@bufbuild/protobuf';
import { CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { newId } from '#src/new-id.ts';
import type { References } from '#src/payments/create/stored-references.ts';
import { fieldRefusal } from '#src/service-error.ts';
import type { Claim } from '#src/store/engine/claim-payment.ts';
import type { Database, Queries } from '#src/store/engine/database.ts';
import {
  type CustomerName,
  countMethods,
  findCardOfCustomer,
  MAX_METHODS,
} from '#src/store/tables/stored-methods.ts';
import type { CardDeps, PayerCard } from './payer-card.ts';

/**
 * Determines how an approval affects stored methods: the payment uses a stored method, stores its card as a new one, or
 * uses the customer's stored copy of the same card. A new card is sealed before the payment is sent, so that it is
 * available even if the approval is learned late.
 *
 * @throws ServiceError STORED_METHOD_LIMIT_REACHED.
 */
export async function cardToVault(
  { database, vault }: CardDeps & { readonly database: Database },
  { accountId, paymentMethod }: CreatePaymentRequest,
  card: PayerCard | undefined,
  stored: References | undefined,
): Promise<Pick<Claim, 'vault' | 'storedMethod'>> {
  if (stored?.vaultedToken) return { vault: undefined, storedMethod: stored.vaultedToken.id };
  if (!paymentMethod?.vaultOnSuccess || !card) return { vault: undefined };
  const customerId = stored?.customer?.id;
  const { fingerprint } = card;
  if (customerId && fingerprint !== undefined) {
    const customer = { accountId, customerId };
    const found = await findCardOfCustomer(database, customer, fingerprint);
    if (found) return { vault: undefined, storedMethod: found.id };
    await requireRoom(database, customer, 'payment_method.vault_on_success');
  }
  const token = newId(accountId);
  const kept = {
    token,
    card: toBinary(CardDataSchema, { ...card.data, securityCodeLength: 0 }),
    cardNumber: await vault.seal(card.attempt.number, token),
  };
  return { vault: kept };
}

/** Checks that a customer may store another method. @throws ServiceError STORED_METHOD_LIMIT_REACHED. */
export async function requireRoom(queries: Queries, customer: CustomerName, field: string): Promise<void> {
  if ((await countMethods(queries, customer)) < MAX_METHODS) return;
  const message = `must not be sent for a customer with ${MAX_METHODS} stored methods, including pending ones; unenroll one first`;
  throw fieldRefusal('STORED_METHOD_LIMIT_REACHED', field, 'NOT_ALLOWED', message);
}
