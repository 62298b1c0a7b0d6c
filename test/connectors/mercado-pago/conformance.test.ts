import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import { lookUpOf } from '../attempts.ts';
import { describeConformance } from '../conformance.ts';
import { changed, row } from '../conforming-answers.ts';
import {
  PAYMENT_ID,
  PREFERENCE_ID,
  paymentAnswer,
  preferenceAnswer,
  refusal,
  searchAnswer,
} from './answers.ts';
import { SHARED } from './conforming-connection.ts';
import { attemptInPesos } from './mercado-pago-under-test.ts';

/* Redirected payers and local methods at Mercado Pago; card-conformance.test.ts has cards. */

const ANOTHER = '00000000-0000-4000-8000-000000000000';
const attempt = attemptInPesos();
const reference = `${PREFERENCE_ID}/${PAYMENT_ID}`;

describeConformance({
  ...SHARED,
  connector: mercadoPagoConnector,
  paid: 'awaits_payer',
  lost: 'not_sent',
  attempt: attemptInPesos,
  approval: (asked) => ({ status: 201, body: preferenceAnswer(asked) }),
  secondCharge: {
    recorded: String(PAYMENT_ID),
    report: async (connection) => connection.lookUp?.(lookUpOf(attempt, { reference })),
    answer: () => searchAnswer(paymentAnswer(attempt, { id: PAYMENT_ID + 1 }), paymentAnswer(attempt)),
  },
  answers: [
    changed('awaits_payer', 'a preference', {}),
    changed('awaits_payer', 'a preference without an account', { collector_id: undefined }),
    changed('awaits_payer', 'a preference of several items', {
      items: [
        { quantity: 3, unit_price: 1000, currency_id: 'ARS' },
        { quantity: 1, unit_price: 0.5, currency_id: 'ARS' },
      ],
    }),
    changed('unknown', 'a preference without items', { items: undefined }),
    ...[400, 401, 403, 404, 409, 422, 423, 424, 429, 500].map((status) =>
      row('not_sent', `a refusal with ${status}`, refusal(status), status),
    ),
    row('not_sent', 'a refusal that is not in the provider’s form', { message: 'proxy says no' }, 403),
    changed('not_sent', 'an invalid URL', { init_point: 'javascript:alert(1)' }),
    changed('not_sent', 'an invalid id', { id: '../payments' }),
    ...Object.entries({
      external_reference: ANOTHER,
      collector_id: 987654321,
      items: [{ title: 'x', quantity: 2, unit_price: 3000.5, currency_id: 'ARS' }],
    }).map(([field, value]) =>
      changed('unknown', `a preference whose ${field} is another's`, { [field]: value }),
    ),
    changed('unknown', 'a preference in another currency', {
      items: [{ title: 'x', quantity: 1, unit_price: 3000.5, currency_id: 'USD' }],
    }),
  ],
});
