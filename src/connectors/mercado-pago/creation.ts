import type { HttpResult } from '../kit/http-client.ts';
import { bodyOf } from '../kit/provider-answer.ts';
import { type OptionalFields, sendMended } from '../kit/refusal.ts';
import type { PaymentAttempt } from '../port/attempt.ts';
import { refusedFieldOf } from './refusals.ts';
import type { MercadoPagoSettings } from './settings.ts';
import { createPreference, type Send } from './to-provider.ts';

const OPTIONAL: OptionalFields = {
  names: /^(payer\.(email|phone|identification|address)|statement_descriptor)$/,
  refusedBy: (result) => [refusedFieldOf(bodyOf(result, 400))],
  pathOf: (name) => name.split('.'),
};

/**
 * Creates a preference, which moves no money. If Mercado Pago refuses it for an optional field, sends it once more
 * without that field and under a separate key. Two preferences do no harm: the payer is only sent to the stored one.
 */
export async function sendPreference(
  attempt: PaymentAttempt,
  amount: number,
  settings: MercadoPagoSettings,
  send: Send,
): Promise<HttpResult> {
  const request = createPreference(attempt, amount, settings);
  const again = { idempotencyKey: `${attempt.transactionId}:2` };
  return sendMended(
    request.body,
    (body, isRepeat) => send({ ...request, body, ...(isRepeat && again) }),
    OPTIONAL,
  );
}
