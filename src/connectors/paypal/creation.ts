import type { HttpResult } from '../kit/http-client.ts';
import { type OptionalFields, sendMended } from '../kit/refusal.ts';
import type { AttemptFacts } from '../port/attempt.ts';
import type { PayPalAmount } from './money.ts';
import { refusedFields } from './refusals.ts';
import type { PayPalSettings } from './settings.ts';
import { createOrder, type Send } from './to-provider.ts';

const OPTIONAL: OptionalFields = {
  names: /^\/(payment_source\/paypal\/(email_address|name(\/\w+)?)|purchase_units\/0\/description)$/,
  refusedBy: refusedFields,
  pathOf: (pointer) => pointer.split('/').slice(1),
};

/**
 * Creates an order, which moves no money. If PayPal refuses it only for optional fields, sends it once more without
 * them and under a separate request id. Two orders do no harm: the payer is only sent to the stored one.
 */
export async function sendOrder(
  facts: AttemptFacts,
  amount: PayPalAmount,
  settings: PayPalSettings,
  send: Send,
): Promise<HttpResult> {
  const request = createOrder(facts, amount, settings);
  const again = { requestId: `${facts.transactionId}:2` };
  return sendMended(
    JSON.parse(request.body) as object,
    (body, isRepeat) => send({ ...request, body: JSON.stringify(body), ...(isRepeat && again) }),
    OPTIONAL,
  );
}
