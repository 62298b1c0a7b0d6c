import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import { lookUpOf } from '../attempts.ts';
import { describeConformance } from '../conformance.ts';
import { PAYMENT_ID, paymentAnswer } from './answers.ts';
import { CARD_ANSWERS, cardInPesos, cardPreparation } from './conforming-cards.ts';
import { SHARED } from './conforming-connection.ts';

/* Cards at Mercado Pago; conformance.test.ts has redirected payers and local methods. */

const paid = cardInPesos();

describeConformance({
  ...SHARED,
  connector: mercadoPagoConnector,
  attempt: cardInPesos,
  // Neither the token nor the search contains our transaction's id.
  accessToken: cardPreparation,
  approval: (asked) => ({ status: 201, body: paymentAnswer(asked) }),
  secondCharge: {
    recorded: String(PAYMENT_ID),
    report: async (connection) =>
      connection.lookUp?.(
        lookUpOf(paid, { reference: `/${PAYMENT_ID}`, hint: { providerPaymentId: String(PAYMENT_ID + 1) } }),
      ),
    answer: (request) =>
      paymentAnswer(paid, request.includes(String(PAYMENT_ID + 1)) ? { id: PAYMENT_ID + 1 } : {}),
  },
  answers: CARD_ANSWERS,
});
