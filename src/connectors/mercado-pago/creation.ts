import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';
import { bodyOf, objectsAt, textOf } from '#src/connectors/provider-answer.ts';
import { withoutField } from '#src/connectors/refused-field.ts';
import type { MercadoPagoSettings } from './settings.ts';
import { createPreference, type Send } from './to-provider.ts';

/** Matches the name of a field without which a preference is the same: what it describes moves no money. */
const OPTIONAL = /\b(payer\.(?:email|phone|identification|address)|statement_descriptor)\b/;

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
  const result = await send(request);
  const field = refusedField(result);
  const body = field && request.body && withoutField(request.body, field.split('.'));
  return body ? send({ ...request, body, idempotencyKey: `${attempt.transactionId}:2` }) : result;
}

/** Returns the optional field that a refusal names in its texts. */
function refusedField(result: HttpResult): string | undefined {
  const body = bodyOf(result, 400);
  if (!body) return undefined;
  const causes = objectsAt(body, 'cause').map(({ description }) => textOf(description));
  return OPTIONAL.exec([textOf(body.message), ...causes].join('\n'))?.[1];
}
