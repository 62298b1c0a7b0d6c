-- The whole schema. The account leads every primary key of what belongs to an account, so that the tables can be
-- distributed by it. In every table, `id` is the row's own id, a UUIDv7 unless said otherwise; `account_id` is its merchant
-- account; `created_at` and `updated_at` are when the row was made and last changed, where a lease is no change. "Encoded"
-- means a protobuf message in its binary form.

-- Merchant accounts and the keys that speak for them.
CREATE TABLE account (
  id uuid PRIMARY KEY,
  -- The operator's own name for it.
  name text NOT NULL,
  -- The name that payers are shown; '' for none.
  display_name text NOT NULL DEFAULT '' CHECK (char_length(display_name) <= 100),
  -- Demands the secret key of every call, also of those that the public key alone may make.
  secret_always boolean NOT NULL DEFAULT false,
  -- Shows authorizations as such (AUTHORIZE, PENDING / AUTHORIZED) instead of as PURCHASE, SUCCEEDED / APPROVED.
  tells_authorized boolean NOT NULL DEFAULT false,
  -- Origins (RFC 6454) whose pages may call with the public key alone.
  allowed_origins text[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE public_key (
  -- The value of the public-api-key header; it is not secret.
  public_key text COLLATE "C" PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES account,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- null while the key is good.
  revoked_at timestamptz
);
CREATE INDEX public_key_of_account ON public_key (account_id);

CREATE TABLE secret_key (
  account_id uuid NOT NULL REFERENCES account,
  id uuid NOT NULL,
  -- SHA-256 of the secret: it has 128 random bits or more, so a slow hash would protect nothing more.
  secret_hash bytea NOT NULL CHECK (length(secret_hash) = 32),
  created_at timestamptz NOT NULL DEFAULT now(),
  -- null while the key is good.
  revoked_at timestamptz,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX secret_key_account ON secret_key (account_id) WHERE revoked_at IS NULL;

-- The people whom merchants make payments for.
CREATE TABLE customer (
  account_id uuid NOT NULL REFERENCES account,
  id uuid NOT NULL,
  -- The merchant's own id of the customer.
  merchant_customer_id text COLLATE "C",
  -- An encoded payments.v1.CustomerPayer.
  payer bytea NOT NULL,
  -- A JSON array of objects with `key` and `value`.
  metadata text NOT NULL DEFAULT '[]',
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  -- When the person was erased; only the row's key is left.
  deleted_at timestamptz,
  PRIMARY KEY (account_id, id)
);
CREATE UNIQUE INDEX customer_merchant_id ON customer (account_id, merchant_customer_id)
  WHERE merchant_customer_id IS NOT NULL;

-- Checkout sessions: one payment each, until expires_at. One without terms (expires_at is null) takes any number.
CREATE TABLE checkout_session (
  account_id uuid NOT NULL REFERENCES account,
  id uuid NOT NULL,
  -- Whose session it is; null for none.
  customer_id uuid,
  -- The merchant's own id of the order; '' for none.
  merchant_order_id text NOT NULL DEFAULT '',
  -- Shown to the payer, and the description of its payments.
  payment_description text NOT NULL DEFAULT '',
  -- ISO 3166-1 alpha-2.
  country text NOT NULL DEFAULT '',
  -- ISO 4217.
  currency text NOT NULL DEFAULT '',
  -- In minor units of `currency`; 0 for a session without terms.
  amount_minor_units bigint NOT NULL DEFAULT 0,
  -- Where the payer goes back to.
  callback_url text,
  -- A JSON array of objects with `key` and `value`.
  metadata text NOT NULL DEFAULT '[]',
  -- payments.v1.Payment.Workflow of its payments that name none.
  workflow text NOT NULL DEFAULT '',
  -- The types of payment method with which it may be paid; empty: all that the catalogue offers.
  payment_method_types text[] NOT NULL DEFAULT '{}',
  -- When it takes no more payments; null for a session without terms.
  expires_at timestamptz,
  -- Counts the changes of its terms: a payment made by other terms is not claimed.
  version integer NOT NULL DEFAULT 0,
  -- The last payment that was made for it, declined ones included.
  payment_id uuid,
  -- Number of payments made for it, failed ones included: it takes only a few, since stolen cards are tried out where a
  -- card may be tried without end.
  payments integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id),
  CONSTRAINT checkout_session_customer FOREIGN KEY (account_id, customer_id) REFERENCES customer (account_id, id)
);
-- A payer at the checkout page names the session, and nothing else.
CREATE INDEX checkout_session_by_id ON checkout_session (id);

-- Stored payment methods: cards, and wallets that were enrolled.
CREATE TABLE vaulted_token (
  account_id uuid NOT NULL REFERENCES account,
  id uuid NOT NULL,
  -- payment_method.type.
  type text NOT NULL,
  -- payments.v1.StoredPaymentMethod.Status. A card that waits for its payment is ENROLLED and not active.
  status text NOT NULL DEFAULT 'ENROLLED',
  -- true exactly while a payment may use the method.
  active boolean NOT NULL,
  -- An encoded payments.v1.CardData, for cards: what may be shown of the card.
  card bytea,
  -- The card number as a JWE, for cards; null once the method has ended. Nothing else in the database holds it.
  card_number text,
  -- The provider's own token, for wallets.
  provider_token text,
  -- The customer whose method it is; null for a method stored for no customer.
  customer_id uuid,
  -- Keyed hash of the card's number: the same card of the same customer is one method.
  fingerprint uuid,
  -- ISO 3166-1 alpha-2; '' for none.
  country text NOT NULL DEFAULT '',
  -- When a payment last used it; null before the first.
  last_used_at timestamptz,
  -- Of a wallet: the catalogue's connection that can charge it.
  connection_id text,
  -- Of a wallet: the account at the provider that the connection pointed to; no other is asked about it.
  connection_identity text,
  -- Of a wallet: where the payer agrees; null once they have, or can no longer.
  redirect_url text,
  -- Of a wallet: where the payer goes back to; null for none.
  callback_url text,
  -- Of a wallet: when the provider is asked again whether the payer agreed; null once that is known.
  follow_up_at timestamptz,
  -- Of a wallet: when the payer can no longer agree.
  expires_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id),
  CONSTRAINT vaulted_token_number_of_card CHECK (card_number IS NULL OR card IS NOT NULL)
);
CREATE INDEX vaulted_token_of_customer ON vaulted_token (account_id, customer_id, id) WHERE customer_id IS NOT NULL;
-- A payer who comes back from enrolling a wallet, and a notification about it, name its id alone.
CREATE INDEX vaulted_token_by_id ON vaulted_token (id);
CREATE INDEX vaulted_token_to_follow ON vaulted_token (follow_up_at) WHERE follow_up_at IS NOT NULL;
CREATE INDEX vaulted_token_ended_by_age ON vaulted_token (updated_at)
  WHERE status IN ('UNENROLLED', 'DECLINED', 'EXPIRED');

-- What one payment only may use: its key is the claim, inserted in the commit that claims the payment. A payment that
-- fails deletes that of its checkout session.
CREATE TABLE single_use (
  account_id uuid NOT NULL,
  -- The checkout session's or the one-time token's.
  object_id uuid NOT NULL,
  -- The payment that uses it.
  payment_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, object_id)
);

-- One-time tokens: good for one payment, and until expires_at, when they are deleted.
CREATE TABLE one_time_token (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The checkout session whose payment it is for; null for any payment of the account.
  session_id uuid,
  -- An encoded payments.v1.CardData: what may be shown of the card.
  card bytea NOT NULL,
  -- Number and security code as a JWE; null once a payment has used them. Nothing else in the database holds them.
  sealed text,
  -- When it may no longer be used, and is deleted.
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);
CREATE INDEX one_time_token_age ON one_time_token (expires_at);

-- One row a payment. Its idempotency key is claimed by inserting it, in one commit with its transaction, before any
-- provider is called. The records are messages; only what queries need has a column.
CREATE TABLE payment (
  -- No foreign key: accounts are never deleted, and its check would lock the account's row once a payment.
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- Of the request that created it; prefixed where that came with the public key alone (payments/idempotency).
  idempotency_key text COLLATE "C" NOT NULL,
  -- Keyed hash of the canonical request: tells a retry from another request under the same key.
  request_hash bytea NOT NULL,
  -- Digest of the request fields that request_hash covers. Hashes of releases that know different fields are not
  -- compared: a request that cannot be compared gets the stored response.
  request_shape bytea NOT NULL,
  -- payments.v1.Payment.Status.
  status text NOT NULL,
  -- An encoded payments.v1.Payment: the current record.
  record bytea NOT NULL,
  -- Names the schema by which the first response was rendered (response_schema); null until there is a response. It
  -- never changes.
  answer bytea,
  -- The record that the first response shows; null while `record` is still that record.
  answered_record bytea,
  -- Sum of its captures, in minor units of its currency; the record says the same in decimals.
  captured_minor_units bigint NOT NULL DEFAULT 0 CHECK (captured_minor_units >= 0),
  -- Sum of its refunds, likewise.
  refunded_minor_units bigint NOT NULL DEFAULT 0 CHECK (refunded_minor_units >= 0),
  -- Nothing more may be captured: it was canceled or lapsed, or the last capture was made.
  released boolean NOT NULL DEFAULT false,
  -- The transaction of the operation that is open: one at a time, so that its bounds hold.
  open_operation uuid,
  -- Counts the writes of operations: a record made from an older version is not written.
  version integer NOT NULL DEFAULT 0,
  -- Number of its events, which numbers them.
  event_sequence integer NOT NULL DEFAULT 0,
  -- The merchant's own id of the order, by which payments are found; '' for none.
  merchant_order_id text NOT NULL DEFAULT '',
  -- The last four digits of the card's number; '' for none.
  card_last_four text NOT NULL DEFAULT '',
  -- When the payer's personal data was erased from the payment. A later operation may bring more of it: updated_at is
  -- later then.
  personal_data_erased_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id),
  UNIQUE (account_id, idempotency_key)
);
-- One index for each filter of ListPayments, in the order of its pages.
CREATE INDEX payment_by_time ON payment (account_id, created_at, id);
CREATE INDEX payment_by_status ON payment (account_id, status, created_at, id);
CREATE INDEX payment_by_order ON payment (account_id, merchant_order_id, created_at, id);
CREATE INDEX payment_by_last_four ON payment (account_id, card_last_four, created_at, id) WHERE card_last_four <> '';

-- One row an attempt at a provider, an operation on what it took, or a dispute. The id of an attempt or an operation is
-- the provider's idempotency key.
CREATE TABLE transaction (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The payment that it belongs to.
  payment_id uuid NOT NULL,
  -- payments.v1.Transaction.Type. PURCHASE also stands for an authorization of an account that has them shown so.
  type text NOT NULL DEFAULT 'PURCHASE',
  -- The transaction that a capture, cancel, refund or dispute acts on; null for an attempt.
  parent_id uuid,
  -- The catalogue's connection that was asked.
  connection_id text NOT NULL,
  -- The account at the provider that the connection pointed to: no other is asked about this transaction.
  connection_identity text NOT NULL,
  -- payments.v1.Transaction.Status.
  status text NOT NULL,
  -- 0 for a verification.
  amount_minor_units bigint NOT NULL CHECK (amount_minor_units >= 0),
  -- ISO 4217.
  currency text NOT NULL,
  -- The flag of the request; the record shows another (docs/api.md), and a later capture goes by this one.
  capture boolean NOT NULL,
  -- Of a capture: none may follow.
  final boolean NOT NULL DEFAULT false,
  -- The provider's own id of it, or what else the connector needs for later calls.
  reference text CHECK (length(reference) <= 512),
  -- The merchant's own reference; null if one was generated.
  merchant_reference text,
  -- The stored method that it uses, or the card that waits for its outcome to be kept.
  vaulted_token uuid,
  -- When the unknown outcome of an attempt is looked up next; null once it is known. Until the claim's own deadline this
  -- is the lease of its claimer, after that of the recovery that took it.
  look_up_at timestamptz,
  -- When what goes on after its call is asked about next (an open operation, a payer who was sent away, an authorization
  -- that may lapse); null once it is final.
  follow_up_at timestamptz,
  -- When a notification last had it looked up.
  notified_look_up_at timestamptz,
  -- Counts the takers: "still unknown" is written only by a taker that nobody followed.
  fence integer NOT NULL DEFAULT 0,
  -- Of an operation: the name of its rpc.
  method text,
  -- Of an operation: its idempotency key, unique within account and rpc.
  idempotency_key text COLLATE "C",
  -- Of an operation: as of payment.
  request_hash bytea,
  -- Of an operation: as of payment.
  request_shape bytea,
  -- Of an operation: names the schema of its response (response_schema). It never changes.
  response bytea,
  -- Of an operation: the record that its response shows. It never changes.
  response_record bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
) WITH (fillfactor = 80);
CREATE INDEX transaction_payment ON transaction (payment_id);
-- Returns of payers and notifications name no account.
CREATE INDEX transaction_by_id ON transaction (id);
CREATE INDEX transaction_reference ON transaction (connection_id, reference) WHERE reference IS NOT NULL;
CREATE INDEX transaction_by_merchant_reference ON transaction (account_id, merchant_reference)
  WHERE merchant_reference IS NOT NULL;
CREATE UNIQUE INDEX transaction_operation_key ON transaction (account_id, method, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
-- By connection, so that the backlog of one provider does not delay another's.
CREATE INDEX transaction_look_up_by_connection ON transaction (connection_id, look_up_at) WHERE look_up_at IS NOT NULL;
CREATE INDEX transaction_follow_up ON transaction (connection_id, follow_up_at) WHERE follow_up_at IS NOT NULL;
-- What is open, so that it is counted without a look at authorizations that wait for days.
CREATE INDEX transaction_open_follow_up ON transaction (type, created_at)
  WHERE follow_up_at IS NOT NULL AND status IN ('CREATED', 'PENDING');

-- Providers' notifications, as they came: stored before they are acknowledged, processed after.
CREATE TABLE notification (
  -- The nil UUID until its transaction is found.
  account_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  -- The catalogue's connection at whose address it came.
  connection_id text NOT NULL,
  -- The same for every delivery of one notification.
  deduplication_key text COLLATE "C" NOT NULL,
  -- One notification may be about several transactions.
  subject integer NOT NULL,
  -- Our id of the transaction; null until it is found, if the notification names only the provider's.
  transaction_id uuid,
  -- The provider's own id of it; null if the notification does not name it.
  reference text,
  -- Of a dispute: its stage.
  dispute text,
  -- Of a dispute: the provider's id of it.
  dispute_reference text,
  -- Of a dispute: the disputed part of the payment; null if the notification does not say.
  disputed_minor_units bigint,
  -- Of a dispute: ISO 4217 of that part.
  disputed_currency text,
  -- Its body, byte for byte.
  body bytea NOT NULL,
  -- The query of its URL, without `?`.
  query text NOT NULL,
  -- The headers that its signature covers, as a JSON object.
  headers text NOT NULL DEFAULT '{}',
  -- When it came: its signature is judged as of then.
  received_at timestamptz NOT NULL DEFAULT now(),
  -- When it is processed next; null once it was.
  process_at timestamptz DEFAULT now(),
  -- Counts the times it was taken; each pause is longer than the one before.
  tries integer NOT NULL DEFAULT 0,
  -- applied, unchanged or unmatched.
  result text,
  PRIMARY KEY (account_id, connection_id, deduplication_key, subject)
);
-- By connection, so that those of a busy one are passed over in one step.
CREATE INDEX notification_due_of_connection ON notification (connection_id, process_at) WHERE process_at IS NOT NULL;
-- Worded as in the statement that settles what a look-up has served, so that no other index seems to serve it.
CREATE INDEX notification_open_of_transaction ON notification (account_id, transaction_id, deduplication_key, subject)
  WHERE num_nonnulls(process_at) = 1;
CREATE INDEX notification_of_transaction ON notification (account_id, transaction_id) WHERE transaction_id IS NOT NULL;
CREATE INDEX notification_by_age ON notification (received_at);

-- Merchants' servers that receive events.
CREATE TABLE webhook (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- Where events are sent.
  url text NOT NULL,
  -- The merchant's own words.
  description text NOT NULL,
  -- The types of the events that it receives.
  events text[] NOT NULL,
  -- false: nothing is sent, and no new event is delivered to it.
  active boolean NOT NULL DEFAULT true,
  -- Why the service turned it off by itself.
  disabled_reason text,
  -- The signing secret as a JWE bound to the webhook's id. Nothing else in the database holds it.
  secret text NOT NULL,
  -- The secret before `secret`, sealed as that is; it signs too until previous_secret_until. Null if there was none.
  previous_secret text,
  -- When previous_secret stops signing.
  previous_secret_until timestamptz,
  -- Credentials that the receiver wants beside the signature: a JSON object, sealed as the signing secret is.
  credentials text,
  -- The names of their headers, to be shown.
  credential_headers text[] NOT NULL DEFAULT '{}',
  -- When deliveries began to fail; null while they succeed.
  failing_since timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);

-- The outbox: one row a change that a webhook receives, written in the statement that makes the change.
CREATE TABLE event (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- Such as payment.purchase (webhooks/events).
  type text NOT NULL,
  -- The nil UUID for an event of a stored method, and for webhook.test.
  payment_id uuid NOT NULL,
  -- Numbers the changes of the payment.
  sequence integer NOT NULL,
  -- An encoded payments.v1.Payment or StoredPaymentMethod after the change; empty for webhook.test.
  record bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When its deliveries were made.
  relayed_at timestamptz,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX event_open ON event (created_at) WHERE relayed_at IS NULL;
CREATE INDEX event_of_payment ON event (account_id, payment_id, sequence);
CREATE INDEX event_by_age ON event (created_at);

-- One row an event and webhook.
CREATE TABLE delivery (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- Whom it is sent to.
  webhook_id uuid NOT NULL,
  -- What is sent.
  event_id uuid NOT NULL,
  -- PENDING, DELIVERED or FAILED.
  status text NOT NULL DEFAULT 'PENDING',
  -- Counts the takers of this delivery and is their fencing token.
  attempts integer NOT NULL DEFAULT 0,
  -- Counts the attempts of the schedule of retries, which a redelivery begins anew.
  retry integer NOT NULL DEFAULT 0,
  -- When it is sent next; while it is being sent, the end of its lease. Null once it is DELIVERED or FAILED.
  due_at timestamptz DEFAULT now(),
  -- HTTP status of the last response; null if there was none.
  response_status integer,
  -- Why the last attempt failed, such as TIMEOUT.
  error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When it was answered with 2xx; null before.
  delivered_at timestamptz,
  PRIMARY KEY (account_id, id)
) WITH (fillfactor = 80);
CREATE INDEX delivery_of_webhook ON delivery (account_id, webhook_id, id);
CREATE INDEX delivery_due ON delivery (account_id, webhook_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_failed ON delivery (account_id, webhook_id, id) WHERE status = 'FAILED';
CREATE INDEX delivery_of_event ON delivery (account_id, event_id);
CREATE INDEX delivery_by_age ON delivery (created_at);

-- Calls that made an object other than a payment, by their idempotency key: a repeat gets the first response again.
-- Written in the commit that makes the object.
CREATE TABLE replayed_call (
  account_id uuid NOT NULL,
  -- Name of the rpc.
  method text NOT NULL,
  -- Unique within account and method.
  idempotency_key text COLLATE "C" NOT NULL,
  -- As of payment.
  request_hash bytea NOT NULL,
  -- As of payment.
  request_shape bytea NOT NULL,
  -- The response message, encoded; null only within the transaction that makes the object.
  response bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, method, idempotency_key)
);
-- Responses that contain a person's data, to be erased with the customer. Both messages begin with fields that are always
-- there, so the customer's id has a fixed place: the first field of one, the fourth of the other. (A field that holds a
-- UUID takes 38 bytes.)
CREATE INDEX replayed_call_of_customer ON replayed_call
  (account_id, substring(response FROM CASE method WHEN 'CreateCustomer' THEN 3 ELSE 117 END FOR 36))
  WHERE method IN ('CreateCustomer', 'EnrollPaymentMethod');
CREATE INDEX replayed_call_by_age ON replayed_call (created_at);

-- The schemas by which releases render responses from records. A row stays as long as responses name it: for ever.
CREATE TABLE response_schema (
  -- The first bytes of the SHA-256 of `descriptors`.
  digest bytea PRIMARY KEY,
  -- A google.protobuf.FileDescriptorSet with payments.v1.Payment and all that it refers to.
  descriptors bytea NOT NULL
);

-- Tells the keys of this installation from others: each replica compares its own at its start. No key can be computed
-- from its check value.
CREATE TABLE installation_key (
  -- `hash key`, or `vault key` and its id.
  name text PRIMARY KEY,
  -- A keyed hash of a constant.
  check_value bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- What operators did, by commands and in the dashboard. Rows are only ever added, in the commit of the action; only the
-- count of failed sign-ins goes up within its minute. No secret is in them.
CREATE TABLE audit_log (
  -- The nil UUID for an action on the whole installation.
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- A user and host, or an operator of the dashboard.
  actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 600),
  -- A word such as add-secret or refund.
  action text NOT NULL CHECK (length(action) BETWEEN 1 AND 100),
  -- The id of a key, a payment or a webhook; '' for the account.
  subject text NOT NULL CHECK (length(subject) <= 300),
  -- The setting, or the amount.
  detail text NOT NULL CHECK (length(detail) <= 1000),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);

-- Operators who have signed in to the dashboard.
CREATE TABLE operator_session (
  -- SHA-256 of the token in the cookie: no reader of this table can become an operator.
  token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
  -- Names the operator key, as `operator-` and the first digits of its SHA-256.
  actor text NOT NULL,
  -- SHA-256 of the operator key: a key that is no longer configured ends its sessions.
  key_hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When it was last used: one that is idle too long ends.
  seen_at timestamptz NOT NULL DEFAULT now()
);
