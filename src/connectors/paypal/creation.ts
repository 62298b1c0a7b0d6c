import type { AttemptFacts } from '#src/connectors/attempt.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';
import { objectsAt, readJsonObject } from '#src/connectors/provider-answer.ts';
import { withoutField } from '#src/connectors/refused-field.ts';
import type { PayPalAmount } from './money.ts';
import { fieldOf } from './provider-data.ts';
import type { PayPalSettings } from './settings.ts';
import { createOrder, type Send } from './to-provider.ts';

/** Matches PayPal's pointers to fields without which an order is the same: what they describe moves no money. */
const OPTIONAL = /^\/(payment_source\/paypal\/(email_address|name(\/\w+)?)|purchase_units\/0\/description)$/;

/**
 * Creates an order, which moves no money; if PayPal refuses it for optional fields alone, once more without them, under
 * a request id of its own. Two orders do no harm: a payer is sent to the one whose answer was stored.
 */
export async function sendOrder(
  facts: AttemptFacts,
  amount: PayPalAmount,
  settings: PayPalSettings,
  send: Send,
): Promise<HttpResult> {
  const request = createOrder(facts, amount, settings);
  const result = await send(request);
  const fields = refusedFields(result);
  if (fields.length === 0 || !fields.every((field) => OPTIONAL.test(field))) return result;
  const mended = fields.reduce<object | undefined>(
    (body, field) => body && withoutField(body, field.split('/').slice(1)),
    JSON.parse(request.body ?? '{}'),
  );
  if (!mended) return result;
  return send({ ...request, requestId: `${facts.transactionId}:2`, body: JSON.stringify(mended) });
}

/** Returns PayPal's pointers to the fields for which it refused a request; '' for a fault of no field. */
function refusedFields(result: HttpResult): readonly string[] {
  if (result.kind !== 'answer' || (result.status !== 400 && result.status !== 422)) return [];
  return objectsAt(readJsonObject(result.body) ?? {}, 'details').map(fieldOf);
}
