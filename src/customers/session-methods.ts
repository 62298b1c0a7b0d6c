import { create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  BankSchema,
  type OfferedCard,
  OfferedCardSchema,
  type OfferedPaymentMethod,
  OfferedPaymentMethodSchema,
} from '#gen/payments/v1/checkout_service_pb.js';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { type CardData, CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import { Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { PAYERS_BANK } from '#src/connectors/port/capabilities.ts';
import type { PaymentDeps } from '#src/payments/create/create-payment.ts';
import { cardName } from '#src/payments/method/card.ts';
import type { LiveCatalogue } from '#src/payments/route/live-catalogue.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';
import { readCustomer } from '#src/store/tables/customers.ts';
import { listMethods, type StoredMethod } from '#src/store/tables/stored-methods.ts';
import { banksOf } from './banks.ts';
import { isOfTerms, nameOf, type Offer, offeredMethods, takesInstallments } from './offered-methods.ts';

/**
 * Lists the methods with which a session can be paid: its customer's stored methods, then the catalogue's types. A local
 * method that needs the payer's bank has the banks; it is left out while its provider cannot list them.
 */
export async function listSessionMethods(
  deps: PaymentDeps,
  session: StoredSession,
): Promise<OfferedPaymentMethod[]> {
  return (await listOffers(deps, session)).map(({ method }) => method);
}

/** Lists the same methods as `listSessionMethods`, with what their payers must know and send. */
export async function listOffers(deps: PaymentDeps, session: StoredSession): Promise<Offer[]> {
  const catalogue = deps.catalogue();
  const { accountId, customerId } = session;
  const [stored, customer] = customerId
    ? await Promise.all([
        listMethods(deps.database, { accountId, customerId }),
        readCustomer(deps.database, accountId, customerId),
      ])
    : [[], undefined];
  const payer = customer && fromBinary(CustomerPayerSchema, customer.payer);
  const offers = offeredMethods(catalogue, { session, payer, now: deps.now() });
  const withBanks = await Promise.all(offers.map(addBanks));
  return [
    ...stored
      .flatMap((method) => storedOffer(catalogue, method, session) ?? [])
      .map((method) => ({ method })),
    ...withBanks.filter((offer) => offer !== undefined),
  ];
}

/** Adds the banks from which the payer must choose. @returns undefined if they cannot be listed. */
async function addBanks(offer: Offer): Promise<Offer | undefined> {
  const { method, local } = offer;
  if (!local?.needs.includes(PAYERS_BANK)) return offer;
  const banks = await banksOf(local.connection, method.type);
  if (!banks?.length) return undefined;
  return { ...offer, method: { ...method, banks: banks.map((bank) => create(BankSchema, bank)) } };
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
