import { describe, expect, it } from 'vitest';
import { readPayment } from '#src/connectors/mercado-pago/answers.ts';
import { fromFailed, fromPayments } from '#src/connectors/mercado-pago/payments.ts';
import { meaningOf } from '#src/connectors/mercado-pago/refusals.ts';
import { declineOf } from '#src/connectors/port/decline.ts';
import { paymentAnswer } from './answers.ts';
import { attemptInPesos } from './mercado-pago-under-test.ts';

/** Every known `status_detail` of a rejection, with its ISO 8583 code. */
const REJECTIONS = `
  cc_rejected_bad_filled_card_number 14
  cc_rejected_bad_filled_date 54
  cc_rejected_bad_filled_other 12
  cc_rejected_bad_filled_security_code N7
  cc_rejected_blacklist 59
  cc_rejected_call_for_authorize 05
  cc_rejected_card_disabled 57
  cc_rejected_card_error 96
  cc_rejected_card_type_not_allowed 57
  cc_rejected_duplicated_payment 94
  cc_rejected_high_risk 59
  cc_rejected_insufficient_amount 51
  cc_rejected_invalid_installments 57
  cc_rejected_max_attempts 65
  cc_rejected_other_reason 05
  cc_rejected_time_out 68
  cc_rejected_3ds_mandatory 1A
  cc_rejected_3ds_challenge 1A
  cc_amount_rate_limit_exceeded 61
  insufficient_amount 51
  insufficient_money 51
  bank_error 06
  rejected_by_bank 05
  rejected_by_issuer 05
  rejected_by_regulations 57
  rejected_by_biz_rule 57
  rejected_insufficient_data 12
  rejected_high_risk 59
  rejected_other_reason 05
  authorization_revoked 57`
  .trim()
  .split('\n')
  .map((line) => line.trim().split(' '));

const STATES = `
  approved/accredited approved
  approved/partially_refunded approved
  refunded/refunded approved
  refunded/by_admin approved
  charged_back/settled approved
  charged_back/in_process approved
  in_mediation/pending approved
  authorized/pending_capture pending
  in_process/pending_contingency pending
  in_process/pending_review_manual pending
  in_process/offline_process pending
  pending/pending_waiting_payment pending
  pending/pending_waiting_transfer pending
  pending/pending_challenge pending
  cancelled/expired open
  cancelled/by_collector open
  cancelled/by_payer open
  rejected/rejected_by_bank open
  rejected/accredited open
  accredited/accredited unknown`
  .trim()
  .split('\n')
  .map((line) => line.trim().split(' '));

const attempt = attemptInPesos();
const asked = {
  transactionId: attempt.transactionId,
  money: attempt.money,
  shownAs: { providerId: 'MERCADO_PAGO', accountId: undefined },
};

describe('the status of a Mercado Pago payment', () => {
  it.each(REJECTIONS)(
    "Mercado Pago's status_detail %s is a decline with ISO 8583 code %s",
    (detail = '', code = '') => {
      const payment = paymentAnswer(attempt, { status: 'rejected', status_detail: detail });
      const outcome = fromFailed(readPayment(payment), 'preference', asked);
      expect(outcome).toMatchObject({ kind: 'declined', iso8583Code: code });
      expect('nowhereElse' in outcome).toBe(code === '94');
    },
  );

  it.each(STATES)("Mercado Pago's payment status %s means the outcome %s", (state = '', kind = '') => {
    const [status = '', detail = ''] = state.split('/');
    const payment = paymentAnswer(attempt, { status, status_detail: detail });
    expect(fromPayments([readPayment(payment)], 'preference', asked).kind).toBe(kind);
  });

  it('a Mercado Pago payment without an ID, which could not be refunded, decides nothing and raises an alarm', () => {
    const payment = readPayment(paymentAnswer(attempt, { id: null }));
    expect(fromPayments([payment], 'preference', asked)).toMatchObject({ kind: 'unknown', alarm: true });
  });

  it.each([undefined, '987'])(
    'the record names the account of a Mercado Pago payment: as in the settings (%s), or else as in the payment',
    (accountId) => {
      const shownAs = { ...asked.shownAs, accountId };
      const payment = paymentAnswer(attempt, { collector_id: Number(accountId ?? 123) });
      const outcome = fromPayments([readPayment(payment)], 'preference', { ...asked, shownAs });
      expect(outcome).toMatchObject({ kind: 'approved', providerData: { accountId: accountId ?? '123' } });
    },
  );

  it.each(['expired', 'by_collector', 'by_payer'])(
    'a payment cancelled at Mercado Pago, %s, is a soft decline',
    (detail) => {
      expect(meaningOf(detail)).toEqual({ iso8583Code: '05', advice: 'NONE' });
    },
  );

  it.each(['accredited', 'constructor', 'cc_rejected_invented', ''])(
    'a rejection for the unknown code "%s" is a soft decline',
    (detail) => {
      const meaning = meaningOf(detail);
      expect(meaning).toEqual({ iso8583Code: '05', advice: 'NONE' });
      expect(declineOf(meaning.iso8583Code).hard).toBe(false);
    },
  );
});
