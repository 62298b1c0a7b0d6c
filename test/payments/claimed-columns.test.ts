import { expect, it } from 'vitest';
import { APPROVED } from '../support/outcomes.ts';
import {
  ACCOUNT_ONE,
  CUSTOMER,
  cardPayment,
  ENROLLED_WALLET,
  type RequestJson,
  walletPayment,
} from '../support/payment-requests.ts';
import { NOT_SENT } from './attempt-outcomes.ts';
import { onScriptedPayments, payments, type Script } from './scripted-payments.ts';

onScriptedPayments();

/** Makes a payment. @returns its columns and those of its attempts. */
async function claimed(request: RequestJson, script: Script = { outcomes: [APPROVED] }) {
  const { record } = await payments.payment(request, script).send();
  const [payment] = await payments.tables.query(
    `SELECT method_type, category, card_brand, card_last_four, country, currency, amount_minor_units, customer_id,
       payer_email_hash, payer_document_hash
     FROM payment WHERE account_id = $1 AND id = $2`,
    [ACCOUNT_ONE, record.id],
  );
  const attempts = await payments.tables.query(
    `SELECT method_kind, catalogue_version, succeeded_at = updated_at AS succeeded,
       extract(epoch FROM payer_due_at - created_at)::integer AS due_in_s
     FROM transaction WHERE account_id = $1 AND payment_id = $2 ORDER BY created_at`,
    [ACCOUNT_ONE, record.id],
  );
  return { payment, attempts };
}

it('a card payment stores what it can be found by, and the first success of each attempt', async () => {
  const document = { document_type: 'CC', document_number: '1.234' };
  const payer = { id: CUSTOMER, email: 'Ana@Example.com', document };
  const request = { ...cardPayment(), customer_payer: payer };
  const { payment, attempts } = await claimed(request, { outcomes: [NOT_SENT, APPROVED] });
  expect(payment).toMatchObject({
    ...{ method_type: 'CARD', category: 'CARD', card_brand: 'VISA', card_last_four: '1881', country: 'US' },
    ...{ currency: 'USD', customer_id: CUSTOMER },
  });
  const card = { method_kind: 'CARD', catalogue_version: 0, due_in_s: 86_400 };
  expect(attempts).toEqual([
    { ...card, succeeded: null },
    { ...card, succeeded: true },
  ]);
  const hashesOf = async (customer_payer: RequestJson) => {
    const { payment: other } = await claimed({ ...cardPayment(), customer_payer });
    return [other?.payer_email_hash, other?.payer_document_hash, other?.customer_id];
  };
  expect(await hashesOf({ email: 'ana@example.com' })).toEqual([payment?.payer_email_hash, null, null]);
  expect(await hashesOf({ document: { ...document, document_number: '1234' } })).toEqual([
    ...[null, payment?.payer_document_hash, null],
  ]);
  expect(await hashesOf({})).toEqual([null, null, null]);
});

it('a payment by an enrolled wallet says so', async () => {
  const payment_method = { type: 'WALLET_C_ENROLLMENT', vaulted_token: ENROLLED_WALLET };
  const { payment, attempts } = await claimed({ ...walletPayment(), payment_method, workflow: 'DIRECT' });
  expect(payment).toMatchObject({ category: 'WALLET', card_brand: '', card_last_four: '' });
  expect(attempts).toMatchObject([{ method_kind: 'WALLET', due_in_s: 86_400 }]);
});

it('an attempt stores until when its payer may act, by its connection’s terms at the time', async () => {
  const { attempts } = await claimed(walletPayment(), {
    outcomes: [APPROVED],
    capabilities: { t1: { methods: ['PAYER_PAGE'], redirectValidMinutes: 30 } },
  });
  expect(attempts).toMatchObject([{ method_kind: 'PAYER_PAGE', catalogue_version: 0, due_in_s: 30 * 60 }]);
});
