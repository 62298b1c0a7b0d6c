import type { AttemptFacts } from '#src/connectors/attempt.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';
import { sendMended } from '#src/connectors/refusal.ts';
import type { PayPalAmount } from './money.ts';
import { refusedFields } from './refusals.ts';
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
  return sendMended(
    JSON.parse(request.body) as object,
    (body, isRepeat) =>
      send({
        ...request,
        body: JSON.stringify(body),
        ...(isRepeat && { requestId: `${facts.transactionId}:2` }),
      }),
    (result) => {
      const refused = refusedFields(result);
      return refused.every((field) => OPTIONAL.test(field))
        ? refused.map((field) => field.split('/').slice(1))
        : [];
    },
  );
}
