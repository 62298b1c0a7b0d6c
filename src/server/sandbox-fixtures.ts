import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { CardDataInputSchema, CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { BinTable } from '#src/payments/method/bin-table.ts';
import { cardData, cardFingerprint } from '#src/payments/method/card.ts';
import { Secret } from '#src/secret.ts';
import { type Database, queriesOf, type Run } from '#src/store/engine/database.ts';
import { insertAccount, insertPublicKey, insertSecretKey } from '#src/store/tables/accounts.ts';
import { lockCustomer } from '#src/store/tables/customers.ts';
import { readMethod } from '#src/store/tables/stored-methods.ts';
import {
  insertCheckoutSession,
  insertCustomer,
  insertVaultedToken,
} from '#src/store/tables/stored-objects.ts';
import { endEnrollment, insertEnrollment } from '#src/store/tables/wallet-enrollments.ts';
import type { CardVault } from '#src/vault/card-vault.ts';

const ACCOUNT_ONE = '11111111-1111-4111-8111-111111111111';

/** Account and keys for a newcomer's first request, and the name that payers see. The keys are public knowledge. */
export const SANDBOX_ACCOUNT = {
  id: ACCOUNT_ONE,
  keys: 'pk_sandbox_one and sk_sandbox_one',
  displayName: 'Demo Shop',
};

const ACCOUNT_TWO = '22222222-2222-4222-8222-222222222222';
const CUSTOMER = 'c0000000-0000-4000-8000-000000000001';
const CHECKOUT_SESSION = '5e550000-0000-4000-8000-000000000001';
const ENROLLED_WALLET = '70ce0000-0000-4000-8000-000000000001';
const VAULTED_CARD = '70ce0000-0000-4000-8000-000000000002';

/** The fixtures as shown on the home page. */
export const SANDBOX_FIXTURES: readonly (readonly [what: string, value: string])[] = [
  ['Account one', ACCOUNT_ONE],
  ['Its keys', 'pk_sandbox_one, sk_sandbox_one'],
  ['Account two, whose authorizations are shown as such', ACCOUNT_TWO],
  ['Its keys', 'pk_sandbox_two, sk_sandbox_two'],
  ['Stored customer of account one', CUSTOMER],
  ['Checkout session of that customer', CHECKOUT_SESSION],
  ['Vaulted card, 4111 1111 1111 1111', VAULTED_CARD],
  ['Enrolled wallet of that customer, for WALLET_C_ENROLLMENT', ENROLLED_WALLET],
];

/**
 * Fills an embedded database with objects for a newcomer to try: two accounts with well-known keys, a stored
 * customer, a checkout session and two vaulted tokens (docs/sandbox.md). Existing objects do not change. Everything
 * belongs to an account that is marked as the sandbox's, so that a service without the sandbox refuses it.
 */
export async function addSandboxFixtures(
  database: Database,
  deps: {
    readonly vault: CardVault;
    readonly fingerprintKey: Uint8Array;
    readonly bins: BinTable;
    /** The account's name as payers see it; none by default. */
    readonly displayName?: string;
  },
): Promise<void> {
  const { displayName = '' } = deps;
  await addAccount(database, 'one', { id: ACCOUNT_ONE, name: 'Sandbox account one', displayName });
  await addAccount(database, 'two', { id: ACCOUNT_TWO, name: 'Sandbox account two', tellsAuthorized: true });
  const payer = create(CustomerPayerSchema, {
    firstName: 'Valentina',
    lastName: 'Restrepo',
    email: 'valentina.restrepo@example.com',
    document: { documentType: 'CC', documentNumber: '1032456789' },
    phone: { countryCode: '57', number: '3001234567' },
  });
  await insertCustomer(database, {
    id: CUSTOMER,
    accountId: ACCOUNT_ONE,
    payer: toBinary(CustomerPayerSchema, payer),
  });
  await insertCheckoutSession(database, {
    id: CHECKOUT_SESSION,
    accountId: ACCOUNT_ONE,
    customerId: CUSTOMER,
  });
  await database.transaction(addEnrolledWallet);
  const card = create(CardDataInputSchema, {
    number: '4111111111111111',
    expirationMonth: 12,
    expirationYear: 30,
    holderName: 'CARD HOLDER',
  });
  await insertVaultedToken(database, {
    id: VAULTED_CARD,
    accountId: ACCOUNT_ONE,
    type: 'CARD',
    card: toBinary(CardDataSchema, cardData(card, deps.bins(card.number))),
    fingerprint: cardFingerprint(deps.fingerprintKey, ACCOUNT_ONE, card.number),
    cardNumber: await deps.vault.seal(new Secret(card.number), VAULTED_CARD),
  });
}

/** Enrolls the wallet as its payer would, unless the customer already has it or was deleted. */
async function addEnrolledWallet(run: Run): Promise<void> {
  const name = { accountId: ACCOUNT_ONE, customerId: CUSTOMER, id: ENROLLED_WALLET };
  const isCustomer = await lockCustomer(run, ACCOUNT_ONE, CUSTOMER);
  if (!isCustomer || (await readMethod(queriesOf(run), name))) return;
  await insertEnrollment(run, {
    ...{ ...name, type: 'WALLET_C_ENROLLMENT', country: 'MX', connectionId: 'sandbox-one' },
    // The enrollment ends here, so no provider is asked about it.
    ...{ connectionIdentity: 'sandbox', redirectUrl: '', callbackUrl: undefined, validS: 0 },
  });
  await endEnrollment(run, name, { status: 'ENROLLED', providerToken: 'sandbox-enrollment-1' });
}

/** Adds an account whose keys end with `keys`. */
async function addAccount(
  database: Database,
  keys: string,
  account: Pick<Parameters<typeof insertAccount>[1], 'id' | 'name' | 'tellsAuthorized' | 'displayName'>,
): Promise<void> {
  const { id } = account;
  await insertAccount(database, { ...account, publicKeyMay: 'PAYMENTS', isSandbox: true });
  await insertPublicKey(database, `pk_sandbox_${keys}`, id);
  const hash = createHash('sha256').update(`sk_sandbox_${keys}`).digest();
  // The secret's id is the account's own, so that a second start does not add a second secret.
  await insertSecretKey(database, { id, accountId: id, hash });
}
