import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { lookUpOf } from '../attempts.ts';
import type { ConformingLocalMethod, LookedUpCode } from '../conformance-local.ts';
import { PAYMENT_ID, paymentAnswer, refusal } from './answers.ts';
import { shownFieldsOf } from './fake-codes.ts';
import { codeAttempt, LOCAL_METHODS, type LocalType, MONEY } from './mercado-pago-under-test.ts';

/**
 * The local methods of an account that offers them all, by its setting: its country and currency are those of the suite's
 * connection.
 */
export const METHODS = Object.fromEntries(Object.entries(LOCAL_METHODS).map(([type, { id }]) => [type, id]));

/** A payment by a local method as the provider returns it. */
function codeAnswer(id: string, attempt: PaymentAttempt, over: JsonObject = {}): JsonObject {
  return {
    ...paymentAnswer(attempt, { status: 'pending', status_detail: 'pending_waiting_transfer' }),
    ...{ payment_method_id: id, date_of_expiration: '2030-01-01T00:00:00.000-03:00' },
    ...shownFieldsOf({ payment_method_id: id }, PAYMENT_ID, 'https://mercadopago.example'),
    ...over,
  };
}

function rowOf(type: LocalType): ConformingLocalMethod {
  const { id } = LOCAL_METHODS[type];
  const newAttempt = () => codeAttempt(type, { money: MONEY, country: 'AR' });
  const known = newAttempt();
  const reference = `/${PAYMENT_ID}`;
  const found = (
    outcome: LookedUpCode['outcome'],
    name: string,
    over: JsonObject,
    status = 200,
  ): LookedUpCode => ({
    ...{ outcome, name },
    answer: (_request, attempt) => ({ status, body: codeAnswer(id, attempt, over) }),
  });
  return {
    type,
    attempt: newAttempt,
    shows: type === 'PSE' ? 'page' : 'instructions',
    created: (attempt) => ({ status: 201, body: codeAnswer(id, attempt) }),
    refusal: { status: 400, body: refusal(400) },
    otherMoney: [(body) => ({ ...body, transaction_amount: 1 }), (body) => ({ ...body, currency_id: 'USD' })],
    lookUps: {
      over: { reference },
      answers: [
        found('awaits_payer', 'an open payment', {}),
        found('pending', 'a payment that is being confirmed', { status: 'in_process' }),
        found('approved', 'a paid payment', { status: 'approved', status_detail: 'accredited' }),
        found('expired', 'a payment that ran out', { status: 'cancelled', status_detail: 'expired' }),
        found('expired', 'a cancelled payment', { status: 'cancelled', status_detail: 'by_collector' }),
        found('declined', 'a rejected payment', { status: 'rejected', status_detail: 'bank_error' }),
        found('unknown', 'an unknown status', { status: 'created' }),
        found('unknown', 'another amount', { transaction_amount: 1 }),
        found('unknown', 'another reference', { external_reference: 'theirs' }),
        found('unknown', 'a payment that does not say how to pay it', {
          ...{ transaction_details: {}, point_of_interaction: {} },
        }),
        found('unknown', 'no payment', {}, 404),
      ],
    },
    ...(LOCAL_METHODS[type].closes && {
      closing: {
        query: lookUpOf(known, { reference }),
        request: /^PUT \/v1\/payments\/\d+ /,
        answer: (_request: string, isClosed: boolean) =>
          codeAnswer(id, known, isClosed ? { status: 'cancelled' } : {}),
      },
    }),
  };
}

/** The rows of the local methods. */
export const CODES = (Object.keys(LOCAL_METHODS) as LocalType[]).map(rowOf);
