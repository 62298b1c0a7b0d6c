import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';
import { bodyOf } from '#src/connectors/provider-answer.ts';
import { sendMended } from '#src/connectors/refusal.ts';
import { refusedFieldOf } from './refusals.ts';
import type { MercadoPagoSettings } from './settings.ts';
import { createPreference, type Send } from './to-provider.ts';

/** Matches the name of a field without which a preference is the same: what it describes moves no money. */
const OPTIONAL = /^(payer\.(email|phone|identification|address)|statement_descriptor)$/;

/**
 * Creates a preference, which moves no money; if Mercado Pago refuses it for an optional field, once more without that
 * field, under a key of its own. Two preferences do no harm: a payer is sent to the one whose answer was stored.
 */
export async function sendPreference(
  attempt: PaymentAttempt,
  amount: number,
  settings: MercadoPagoSettings,
  send: Send,
): Promise<HttpResult> {
  const request = createPreference(attempt, amount, settings);
  return sendMended(
    request.body,
    (body, isRepeat) =>
      send({ ...request, body, ...(isRepeat && { idempotencyKey: `${attempt.transactionId}:2` }) }),
    (result) => {
      const field = refusedFieldOf(bodyOf(result, 400));
      return OPTIONAL.test(field) ? [field.split('.')] : [];
    },
  );
}
