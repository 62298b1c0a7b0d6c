import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { invalid } from './fake-wire.ts';

/** Parameters of the version at hand; another one is refused, as Stripe does. */
const KNOWN: Record<string, string> = {
  create:
    'amount currency capture_method payment_method_types description metadata statement_descriptor_suffix customer expand',
  confirm:
    'payment_method payment_method_options return_url capture_method error_on_requires_action off_session shipping expand',
  update: 'description metadata statement_descriptor_suffix expand',
  capture: 'amount_to_capture metadata expand',
  cancel: 'cancellation_reason expand',
  refund: 'payment_intent amount reason metadata expand',
  method: 'type card billing_details metadata expand',
};

/** Refuses a request with a parameter that its operation does not have. */
export function checkParameters(operation: string, fields: JsonObject): void {
  const known = KNOWN[operation]?.split(' ') ?? [];
  const unknown: JsonValue | undefined = Object.keys(fields).find((name) => !known.includes(name));
  if (unknown)
    throw invalid(`Received unknown parameter: ${unknown}`, { code: 'parameter_unknown', param: unknown });
}
