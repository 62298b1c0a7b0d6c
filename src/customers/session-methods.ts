import { create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type OfferedCard,
  OfferedCardSchema,
  type OfferedPaymentMethod,
  OfferedPaymentMethodSchema,
} from '#gen/payments/v1/checkout_service_pb.js';
import { type CardData, CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import { Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { PaymentDeps } from '#src/payments/create/create-payment.ts';
import { cardName } from '#src/payments/method/card.ts';
import type { LiveCatalogue } from '#src/payments/route/live-catalogue.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';
import { listMethods, type StoredMethod } from '#src/store/tables/stored-methods.ts';
import { isOfTerms, nameOf, offeredMethods, takesInstallments } from './offered-methods.ts';

/** Lists the methods with which a session can be paid: its customer's stored methods, then the catalogue's types. */
export async function listSessionMethods(
  deps: PaymentDeps,
  session: StoredSession,
): Promise<OfferedPaymentMethod[]> {
  const catalogue = deps.catalogue();
  const { accountId, customerId } = session;
  const stored = customerId ? await listMethods(deps.database, { accountId, customerId }) : [];
  const offered = stored.flatMap((method) => storedOffer(catalogue, method, session) ?? []);
  return [...offered, ...offeredMethods(catalogue, session, deps.now())];
}

function storedOffer(
  catalogue: LiveCatalogue,
  { id, type, card, lastUsedAt }: StoredMethod,
  session: StoredSession,
): OfferedPaymentMethod | undefined {
  const offered = catalogue.types.get(type);
  if (!offered || !isOfTerms(offered, session)) return undefined;
  const data = card && fromBinary(CardDataSchema, card);
  return create(OfferedPaymentMethodSchema, {
    type,
    category: Transaction_Category[offered.category] ?? '',
    name: data ? cardName(data) : nameOf(type),
    vaultedToken: id,
    cardData: data && offeredCard(data),
    installments: data !== undefined && takesInstallments(catalogue, session),
    lastSuccessfullyUsedAt: lastUsedAt && timestampFromDate(lastUsedAt),
  });
}

function offeredCard({ brand, lfd, expirationMonth, expirationYear }: CardData): OfferedCard {
  return create(OfferedCardSchema, { brand, lfd, expirationMonth, expirationYear });
}
