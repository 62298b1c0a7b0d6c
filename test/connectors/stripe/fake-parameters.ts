import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { invalid } from './fake-wire.ts';

/** Parameters of this API version; others are refused, as by Stripe. */
const KNOWN: Record<string, string> = {
  create:
    'amount currency capture_method payment_method_types description metadata statement_descriptor_suffix shipping customer confirm payment_method_data payment_method_options expand',
  confirm:
    'payment_method payment_method_options return_url capture_method error_on_requires_action off_session expand',
  update: 'description metadata statement_descriptor_suffix expand',
  capture: 'amount_to_capture metadata expand',
  cancel: 'cancellation_reason expand',
  refund: 'payment_intent amount reason metadata expand',
  customer: 'name email description metadata',
  token: 'pk_token pk_token_instrument_name pk_token_payment_network pk_token_transaction_id',
  method: 'type card billing_details metadata expand',
};

/** Refuses a request with a parameter that its operation does not have, or does not accept in this form. */
export function checkParameters(operation: string, fields: JsonObject): void {
  const known = KNOWN[operation]?.split(' ') ?? [];
  const unknown: JsonValue | undefined = Object.keys(fields).find((name) => !known.includes(name));
  if (unknown)
    throw invalid(`Received unknown parameter: ${unknown}`, { code: 'parameter_unknown', param: unknown });
  checkDescriptor(fields.statement_descriptor_suffix);
  checkBilling(fields.billing_details);
  checkMetadata((fields.metadata ?? {}) as JsonObject);
}

/** Adds to an object's metadata, within Stripe's limits. */
export function addMetadata(object: { metadata: JsonObject }, metadata: JsonValue | undefined): void {
  checkMetadata({ ...object.metadata, ...(metadata as JsonObject | undefined) });
  Object.assign(object.metadata, metadata);
}

/** Refuses metadata beyond Stripe's limits. */
function checkMetadata(metadata: JsonObject): void {
  const entries = Object.entries(metadata);
  if (entries.length > 50) throw invalid('You cannot have more than 50 metadata keys', { param: 'metadata' });
  const [tooLong] =
    entries.find(([name, value]) => name === '' || name.length > 40 || String(value).length > 500) ?? [];
  if (tooLong !== undefined) throw invalid('Metadata is too long', { param: `metadata[${tooLong}]` });
}

/** Refuses a statement descriptor that is not Latin or has no letter. */
function checkDescriptor(suffix: JsonValue | undefined): void {
  if (suffix === undefined || (/^[\x20-\x7e]{1,22}$/.test(String(suffix)) && /[a-z]/i.test(String(suffix))))
    return;
  throw invalid('The statement descriptor must contain at least one letter', {
    param: 'statement_descriptor_suffix',
  });
}

/** Refuses an invalid e-mail address or phone number. */
function checkBilling(details: JsonValue | undefined): void {
  const { email, phone } = (details ?? {}) as JsonObject;
  if (email !== undefined && !/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(String(email))) {
    throw invalid(`Invalid email address: ${email}`, {
      code: 'email_invalid',
      param: 'billing_details[email]',
    });
  }
  if (String(phone ?? '').length > 20) throw invalid('Invalid string', { param: 'billing_details[phone]' });
}
