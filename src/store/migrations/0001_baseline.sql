-- The whole schema. In tables that belong to accounts, the account is the first column of every primary key, so that
-- these tables can be distributed by account. In every table, `id` is the row's own id, a UUIDv7 unless stated
-- otherwise; `account_id` is its merchant account; `created_at` and `updated_at` say when the row was created and last
-- changed; a lease does not count as a change. "Encoded" means a protobuf message in binary form.

-- Merchant accounts and their keys.
CREATE TABLE account (
  id uuid PRIMARY KEY,
  -- The operator's name for the account.
  name text NOT NULL,
  -- The name shown to payers; '' if there is none.
  display_name text NOT NULL DEFAULT '' CHECK (char_length(display_name) <= 100),
  -- What the public key alone may do: NOTHING; SESSIONS, the calls of browsers within a checkout session; PAYMENTS, also
  -- payments by redirect outside a session, whose amount the caller chooses.
  public_key_may text NOT NULL DEFAULT 'SESSIONS' CHECK (public_key_may IN ('NOTHING', 'SESSIONS', 'PAYMENTS')),
  -- Shows authorizations as such (AUTHORIZE, PENDING / AUTHORIZED) instead of as PURCHASE, SUCCEEDED / APPROVED.
  tells_authorized boolean NOT NULL DEFAULT false,
  -- Origins (RFC 6454) whose pages may call with the public key alone.
  allowed_origins text[] NOT NULL DEFAULT '{}',
  -- true if the sandbox created it. Its keys are public knowledge, so everything in it (keys, customers, sessions, stored
  -- methods) is refused while SANDBOX is off.
  sandbox boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- An object's id ends with the last digits of its account's id, so the account can be found from the object's id.
CREATE INDEX account_by_digits ON account (right(id::text, 6));

CREATE TABLE public_key (
  -- The value of the public-api-key header; not secret.
  public_key text COLLATE "C" PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES account,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- null while the key is valid.
  revoked_at timestamptz
);
CREATE INDEX public_key_of_account ON public_key (account_id);

CREATE TABLE secret_key (
  account_id uuid NOT NULL REFERENCES account,
  id uuid NOT NULL,
  -- SHA-256 of the secret, which has at least 128 random bits, so a slow hash would add no protection.
  secret_hash bytea NOT NULL CHECK (length(secret_hash) = 32),
  created_at timestamptz NOT NULL DEFAULT now(),
  -- null while the key is valid.
  revoked_at timestamptz,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX secret_key_account ON secret_key (account_id) WHERE revoked_at IS NULL;

-- Merchants' customers.
CREATE TABLE customer (
  account_id uuid NOT NULL REFERENCES account,
  id uuid NOT NULL,
  -- The merchant's id for the customer.
  merchant_customer_id text COLLATE "C",
  -- An encoded payments.v1.CustomerPayer.
  payer bytea NOT NULL,
  -- A JSON array of objects with `key` and `value`.
  metadata text NOT NULL DEFAULT '[]',
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  -- When the customer's data was erased; since then, only the row's key is left.
  deleted_at timestamptz,
  PRIMARY KEY (account_id, id)
);
CREATE UNIQUE INDEX customer_merchant_id ON customer (account_id, merchant_customer_id)
  WHERE merchant_customer_id IS NOT NULL;

-- Checkout sessions: one payment each, until expires_at. A session without terms (expires_at is null) takes any
-- number of payments.
CREATE TABLE checkout_session (
  account_id uuid NOT NULL REFERENCES account,
  id uuid NOT NULL,
  -- The session's customer; null if there is none.
  customer_id uuid,
  -- The merchant's order id; '' if there is none.
  merchant_order_id text NOT NULL DEFAULT '',
  -- Shown to the payer; also the default description of the session's payments.
  payment_description text NOT NULL DEFAULT '',
  -- ISO 3166-1 alpha-2.
  country text NOT NULL DEFAULT '',
  -- ISO 4217.
  currency text NOT NULL DEFAULT '',
  -- In minor units of `currency`; 0 for a session without terms.
  amount_minor_units bigint NOT NULL DEFAULT 0,
  -- The URL to which the payer returns.
  callback_url text,
  -- A JSON array of objects with `key` and `value`.
  metadata text NOT NULL DEFAULT '[]',
  -- payments.v1.Payment.Workflow, the default for the session's payments.
  workflow text NOT NULL DEFAULT '',
  -- Accepted types of payment methods; empty for every type that the catalogue offers.
  payment_method_types text[] NOT NULL DEFAULT '{}',
  -- Requires the security code in payments with a stored card.
  security_code_required boolean NOT NULL DEFAULT false,
  -- The most installments of a payment; 0 for no limit.
  max_installments integer NOT NULL DEFAULT 0 CHECK (max_installments >= 0),
  -- When the session stops accepting payments; null for a session without terms.
  expires_at timestamptz,
  -- Counts the changes to the session's terms: a payment prepared from other terms is not claimed.
  version integer NOT NULL DEFAULT 0,
  -- The session's last payment, even if declined.
  payment_id uuid,
  -- Number of the session's payments, including failed ones. The limit is low, because unlimited attempts would let
  -- fraudsters test stolen cards.
  payments integer NOT NULL DEFAULT 0,
  -- Number of the session's one-time tokens, including used and expired ones. The limit is the same.
  tokens integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id),
  CONSTRAINT checkout_session_customer FOREIGN KEY (account_id, customer_id) REFERENCES customer (account_id, id)
);
CREATE INDEX checkout_session_by_age ON checkout_session (expires_at);

-- Stored payment methods: cards and enrolled wallets.
CREATE TABLE vaulted_token (
  account_id uuid NOT NULL REFERENCES account,
  id uuid NOT NULL,
  -- payment_method.type.
  type text NOT NULL,
  -- payments.v1.StoredPaymentMethod.Status. A card that waits for its payment is ENROLLED and not active.
  status text NOT NULL DEFAULT 'ENROLLED',
  -- true if and only if a payment may use the method.
  active boolean NOT NULL,
  -- For cards: an encoded payments.v1.CardData, the data that may be shown.
  card bytea,
  -- For cards: the card number as a JWE, stored nowhere else in the database; null once the method is unenrolled.
  card_number text,
  -- For wallets: the provider's token.
  provider_token text,
  -- The customer who owns the method; null if there is none.
  customer_id uuid,
  -- Keyed hash of the card number: the same card of the same customer is one method.
  fingerprint uuid,
  -- ISO 3166-1 alpha-2; '' if unknown.
  country text NOT NULL DEFAULT '',
  -- When a payment last used it; null if none has.
  last_used_at timestamptz,
  -- For wallets: the catalogue's connection that can charge it.
  connection_id text,
  -- For wallets: the provider account that the connection pointed to; no other account is asked about it.
  connection_identity text,
  -- For wallets: the URL where the payer agrees to later charges; null once they have agreed or can no longer agree.
  redirect_url text,
  -- For wallets: the URL to which the payer returns; null if there is none.
  callback_url text,
  -- For wallets: when the provider is next asked whether the payer has agreed; null once this is known.
  check_at timestamptz,
  -- For wallets: the deadline for the payer's agreement.
  expires_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id),
  CONSTRAINT vaulted_token_number_of_card CHECK (card_number IS NULL OR card IS NOT NULL),
  -- An erased method keeps neither.
  CONSTRAINT vaulted_token_card_or_wallet CHECK (card IS NOT NULL OR connection_id IS NOT NULL OR status = 'UNENROLLED')
);
CREATE INDEX vaulted_token_of_customer ON vaulted_token (account_id, customer_id, id) WHERE customer_id IS NOT NULL;
CREATE INDEX vaulted_token_check ON vaulted_token (check_at) WHERE check_at IS NOT NULL;
CREATE INDEX vaulted_token_ended_by_age ON vaulted_token (updated_at)
  WHERE status IN ('UNENROLLED', 'DECLINED', 'EXPIRED');

-- Objects that only one payment may use. Inserting the key is the claim, in the commit that claims the payment. A payment that
-- fails deletes the row of its checkout session.
CREATE TABLE single_use (
  account_id uuid NOT NULL,
  -- The checkout session or one-time token.
  object_id uuid NOT NULL,
  -- The payment that uses it.
  payment_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, object_id)
);

-- One-time tokens: valid for one payment, until expires_at, when they are deleted.
CREATE TABLE one_time_token (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The checkout session whose payments may use it; null for any payment of the account.
  session_id uuid,
  -- An encoded payments.v1.CardData: the data that may be shown.
  card bytea NOT NULL,
  -- Keyed hash of the card number, for the record of a payment that a provider approves.
  fingerprint uuid NOT NULL,
  -- What the payer chose with the token, as the part of a payments.v1.CreatePaymentRequest that states it; empty if
  -- nothing.
  choices bytea NOT NULL DEFAULT '',
  -- Number and security code as a JWE, stored nowhere else in the database; null once a payment has used them.
  sealed text,
  -- When the token expires and is deleted.
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);
CREATE INDEX one_time_token_age ON one_time_token (expires_at);

-- One row per payment. Inserting it claims the idempotency key, in one commit with its transaction, before any provider
-- is called. Records are stored as messages; only data that queries need has its own columns.
CREATE TABLE payment (
  -- No foreign key: accounts are never deleted, and its check would lock the account's row for every payment.
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The key of the request that created it; prefixed if the request came with the public key alone (payments/keys).
  idempotency_key text COLLATE "C" NOT NULL,
  -- Keyed hash of the canonical request: distinguishes a retry from a different request with the same key.
  request_hash bytea NOT NULL,
  -- Digest of the request fields that request_hash covers. Hashes made by releases with different fields are not
  -- compared: a request that cannot be compared gets the stored response.
  request_shape bytea NOT NULL,
  -- payments.v1.Payment.Status.
  status text NOT NULL,
  -- An encoded payments.v1.Payment: the current record.
  record bytea NOT NULL,
  -- The schema with which the first response was rendered (response_schema); null before the response. It never
  -- changes.
  response bytea,
  -- The record of the first response; null while `record` is still the same.
  response_record bytea,
  -- Sum of its captures, in minor units of its currency; the record contains the same sum as a decimal.
  captured_minor_units bigint NOT NULL DEFAULT 0 CHECK (captured_minor_units >= 0),
  -- Sum of its refunds, likewise.
  refunded_minor_units bigint NOT NULL DEFAULT 0 CHECK (refunded_minor_units >= 0),
  -- true if nothing more may be captured: it was canceled or lapsed, or the last capture was made.
  released boolean NOT NULL DEFAULT false,
  -- The transaction of the open operation. Only one is open at a time, so that the operations cannot exceed the limits
  -- together.
  open_operation uuid,
  -- Counts the writes: a change that was decided from an older version is not written.
  version integer NOT NULL DEFAULT 0,
  -- Number of its events, and the sequence number of the last.
  event_sequence integer NOT NULL DEFAULT 0,
  -- The merchant's order id, by which payments are found; '' if there is none.
  merchant_order_id text NOT NULL DEFAULT '',
  -- Of its requested money: ISO 4217.
  currency text NOT NULL DEFAULT '',
  -- Of its requested money, in minor units of the currency; 0 for a verification.
  amount_minor_units bigint NOT NULL DEFAULT 0 CHECK (amount_minor_units >= 0),
  -- ISO 3166-1 alpha-2.
  country text NOT NULL DEFAULT '',
  -- payment_method.type.
  method_type text NOT NULL DEFAULT '',
  -- payments.v1.Transaction.Category.
  category text NOT NULL DEFAULT '',
  -- The card's brand, such as VISA; '' if it is unknown or there is no card.
  card_brand text NOT NULL DEFAULT '',
  -- The stored customer; null if there is none. It identifies nobody once the customer is erased.
  customer_id uuid,
  -- Keyed hash of the payer's normalized e-mail address, which differs by account (payments/payer-hashes); null if there is
  -- none. Erased with the personal data.
  payer_email_hash uuid,
  -- Keyed hash of the payer's normalized identity document, likewise.
  payer_document_hash uuid,
  -- The last four digits of the card number; '' if there is no card.
  card_last_four text NOT NULL DEFAULT '',
  -- Keyed hash of the card number, in the record only once a provider has approved or verified the card; null if there is
  -- no card.
  card_fingerprint uuid,
  -- When the payer's personal data was erased from the payment. If a later operation adds personal data, updated_at is later.
  personal_data_erased_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (account_id, idempotency_key)
);
-- One index for each filter of ListPayments, in page order.
CREATE INDEX payment_by_time ON payment (account_id, created_at, id);
CREATE INDEX payment_by_status ON payment (account_id, status, created_at, id);
CREATE INDEX payment_by_order ON payment (account_id, merchant_order_id, created_at, id);
CREATE INDEX payment_by_last_four ON payment (account_id, card_last_four, created_at, id) WHERE card_last_four <> '';
-- The key comes last: of indexes that seem to cost the same, as all do on an empty table, the planner chooses the
-- newest, and keeps that plan.
ALTER TABLE payment ADD PRIMARY KEY (account_id, id);

-- One row per attempt at a provider, operation on an attempt, or dispute. The id of an attempt or an operation is the
-- idempotency key at the provider.
CREATE TABLE transaction (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The payment.
  payment_id uuid NOT NULL,
  -- payments.v1.Transaction.Type. PURCHASE also stands for an authorization if the account does not show authorizations
  -- as such.
  type text NOT NULL DEFAULT 'PURCHASE',
  -- The transaction that a capture, cancel, refund or dispute acts on; null for an attempt.
  parent_id uuid,
  -- The catalogue's connection that the transaction was sent to.
  connection_id text NOT NULL,
  -- The provider account that the connection pointed to; no other account is asked about this transaction.
  connection_identity text NOT NULL,
  -- payments.v1.Transaction.Status.
  status text NOT NULL,
  -- 0 for a verification.
  amount_minor_units bigint NOT NULL CHECK (amount_minor_units >= 0),
  -- ISO 4217.
  currency text NOT NULL,
  -- The flag of the request, which later captures use; the record may show another (docs/api.md).
  capture boolean NOT NULL,
  -- For a capture: true if no other may follow. For a cancel: false if it closes an attempt that awaits its payer, true if
  -- it releases an authorization.
  final boolean NOT NULL DEFAULT false,
  -- The address with which the connector finds the provider's object again: the provider's id of it, or several ids in the
  -- connector's own form. Only the connector reads it.
  reference text CHECK (length(reference) <= 512),
  -- The id by which the provider itself names this movement of money: the payment, capture, refund or dispute. It is often
  -- part of the reference, but external captures and refunds have no reference. It shows that two reports are about the same
  -- money. Null until the provider reports one, and for a movement that it does not name.
  provider_payment_id text CHECK (length(provider_payment_id) <= 255),
  -- The merchant's reference; null if generated.
  merchant_reference text,
  -- The stored method that it uses, or the card to be stored if it succeeds.
  vaulted_token uuid,
  -- Way in which the payer pays an attempt: CARD; WALLET, an enrolled wallet; PAYER_PAGE, on the provider's page;
  -- PAYER_CODE, later, with a code. Null for an operation or a dispute.
  method_kind text,
  -- For an attempt: the time until which its payer can act, should the provider ask for it.
  payer_due_at timestamptz,
  -- The version of the catalogue that it was sent with; 0 for the catalogue of the configuration.
  catalogue_version integer NOT NULL DEFAULT 0,
  -- When it first became SUCCEEDED. It never changes, whatever corrects the transaction later.
  succeeded_at timestamptz,
  -- When the last event that the provider reported about it happened, according to the provider; null if unknown. An
  -- earlier event changes nothing.
  reported_at timestamptz,
  -- true if the payer was redirected, or has returned and the provider has yet to confirm: the transaction is open, but
  -- no call is overdue.
  awaits_payer boolean NOT NULL DEFAULT false,
  -- When its provider is next asked about it; null once nothing more is expected. While a worker asks, or the caller
  -- that claimed the transaction makes its call, this is the end of its lease.
  check_at timestamptz,
  -- Fencing token: 0 for the caller that claimed it. Every write, every lease for a check and all news increase it,
  -- so that a writer with an older token neither writes "still unknown" nor moves check_at.
  fence integer NOT NULL DEFAULT 0,
  -- For an operation: the name of its rpc.
  method text,
  -- For an operation: its idempotency key, unique within account and rpc.
  idempotency_key text COLLATE "C",
  -- For an operation: as in payment.
  request_hash bytea,
  -- For an operation: as in payment.
  request_shape bytea,
  -- For an operation: the schema of its response (response_schema). It never changes.
  response bytea,
  -- For an operation: the record of its response. It never changes.
  response_record bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
) WITH (fillfactor = 80);
CREATE INDEX transaction_payment ON transaction (payment_id);
-- For searches across all accounts.
CREATE INDEX transaction_by_id ON transaction (id);
CREATE INDEX transaction_provider_payment_id ON transaction (connection_id, provider_payment_id)
  WHERE provider_payment_id IS NOT NULL;
CREATE INDEX transaction_by_merchant_reference ON transaction (account_id, merchant_reference)
  WHERE merchant_reference IS NOT NULL;
CREATE UNIQUE INDEX transaction_operation_key ON transaction (account_id, method, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
-- Ordered by connection, so that one provider's backlog does not delay another's.
CREATE INDEX transaction_check ON transaction (connection_id, check_at) WHERE check_at IS NOT NULL;
-- Covers open transactions, so that counting them does not read authorizations that wait for days.
CREATE INDEX transaction_open ON transaction (type, awaits_payer, created_at)
  WHERE check_at IS NOT NULL AND status IN ('CREATED', 'PENDING');

-- News about transactions: providers' unmodified notifications, and payers' returns and requests to pay another way.
-- News is stored before it is acknowledged, and makes its transaction's check due.
CREATE TABLE notification (
  -- The nil UUID until its transaction is found.
  account_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  -- The catalogue's connection that received the notification, or that the payer was redirected to.
  connection_id text NOT NULL,
  -- Identical for every delivery of one notification, and for every return with the same query.
  deduplication_key text COLLATE "C" NOT NULL,
  -- Numbers the subjects: one notification may be about several transactions.
  subject integer NOT NULL,
  -- notification, return (of a payer) or close (for a payer who wants to pay another way).
  kind text NOT NULL DEFAULT 'notification',
  -- Our transaction id; null until it is found if the notification names only the provider's id.
  transaction_id uuid,
  -- The id by which the provider names the transaction, as in transaction; null if the notification does not say.
  provider_payment_id text,
  -- For a dispute: its stage.
  dispute text,
  -- For a dispute: the provider's dispute id.
  dispute_reference text,
  -- For a dispute: the disputed amount; null if the notification does not say.
  disputed_minor_units bigint,
  -- For a dispute: that amount's currency, ISO 4217.
  disputed_currency text,
  -- The body, byte for byte.
  body bytea NOT NULL,
  -- The query of its URL, without `?`.
  query text NOT NULL,
  -- The headers that its signature covers, as a JSON object.
  headers text NOT NULL DEFAULT '{}',
  -- When it arrived; its signature is verified as of this time.
  received_at timestamptz NOT NULL DEFAULT now(),
  -- When to search for its transaction next; null once the transaction's check is due, or the search has been given up.
  check_at timestamptz DEFAULT now(),
  -- When a check last left it waiting; null before.
  tried_at timestamptz,
  -- When it was settled: applied, or found to change nothing; null before.
  settled_at timestamptz,
  -- applied, unchanged, unanswered or unmatched; null until settled.
  result text,
  PRIMARY KEY (account_id, connection_id, deduplication_key, subject)
);
-- Ordered by connection, so that a busy connection's notifications do not delay another's.
CREATE INDEX notification_check ON notification (connection_id, check_at) WHERE check_at IS NOT NULL;
-- For a transaction's unsettled news, and the news settled last.
CREATE INDEX notification_of_transaction ON notification
  (account_id, transaction_id, settled_at, tried_at NULLS FIRST, received_at)
  WHERE transaction_id IS NOT NULL;
CREATE INDEX notification_open ON notification (received_at) WHERE settled_at IS NULL;
CREATE INDEX notification_by_age ON notification (received_at);

-- Merchants' servers that receive events.
CREATE TABLE webhook (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The URL that receives events.
  url text NOT NULL,
  -- The merchant's description.
  description text NOT NULL,
  -- The event types that it receives.
  events text[] NOT NULL,
  -- false: nothing is sent, and new events create no deliveries to it.
  active boolean NOT NULL DEFAULT true,
  -- Why the service turned it off.
  disabled_reason text,
  -- The signing secret as a JWE bound to the webhook's id, stored nowhere else in the database.
  secret text NOT NULL,
  -- The previous secret, sealed like `secret`; it signs too until previous_secret_until. Null if there was none.
  previous_secret text,
  -- When previous_secret stops signing.
  previous_secret_until timestamptz,
  -- Credentials that the receiver requires in addition to the signature: a JSON object, sealed like the signing secret.
  credentials text,
  -- The header names of the credentials; unlike the values, the names may be shown.
  credential_headers text[] NOT NULL DEFAULT '{}',
  -- When deliveries began to fail; null while they succeed.
  failing_since timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);

-- The outbox: one row per change that webhooks receive, written in the statement that makes the change.
CREATE TABLE event (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The event type, such as payment.purchase (webhooks/events).
  type text NOT NULL,
  -- The nil UUID for an event of a stored method, and for webhook.test.
  payment_id uuid NOT NULL,
  -- Numbers the payment's changes.
  sequence integer NOT NULL,
  -- An encoded payments.v1.Payment or StoredPaymentMethod after the change; empty for webhook.test.
  record bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When its deliveries were created.
  relayed_at timestamptz,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX event_open ON event (created_at) WHERE relayed_at IS NULL;
CREATE INDEX event_of_payment ON event (account_id, payment_id, sequence);
CREATE INDEX event_by_age ON event (created_at);

-- One row per event and webhook.
CREATE TABLE delivery (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The receiver.
  webhook_id uuid NOT NULL,
  -- The event to deliver.
  event_id uuid NOT NULL,
  -- PENDING, DELIVERED or FAILED.
  status text NOT NULL DEFAULT 'PENDING',
  -- Counts the attempts, and is their fencing token.
  attempts integer NOT NULL DEFAULT 0,
  -- Counts the attempts of the retry schedule, which a redelivery restarts.
  retry integer NOT NULL DEFAULT 0,
  -- When the next attempt is due; during an attempt, the end of its lease. Null once DELIVERED or FAILED.
  due_at timestamptz DEFAULT now(),
  -- HTTP status of the last response; null without a response.
  response_status integer,
  -- Why the last attempt failed, such as TIMEOUT.
  error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When the receiver responded with 2xx; null before.
  delivered_at timestamptz,
  PRIMARY KEY (account_id, id)
) WITH (fillfactor = 80);
CREATE INDEX delivery_of_webhook ON delivery (account_id, webhook_id, id);
CREATE INDEX delivery_due ON delivery (account_id, webhook_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_failed ON delivery (account_id, webhook_id, id) WHERE status = 'FAILED';
CREATE INDEX delivery_of_event ON delivery (account_id, event_id);
CREATE INDEX delivery_by_age ON delivery (created_at);

-- Calls that created an object other than a payment, by idempotency key: a repeat gets the first response again. Written in
-- the commit that creates the object.
CREATE TABLE replayed_call (
  account_id uuid NOT NULL,
  -- Name of the rpc.
  method text NOT NULL,
  -- Unique within account and method.
  idempotency_key text COLLATE "C" NOT NULL,
  -- As in payment.
  request_hash bytea NOT NULL,
  -- As in payment.
  request_shape bytea NOT NULL,
  -- The encoded response message; null only within the transaction that creates the object.
  response bytea,
  -- The customer whose personal data the response contains, which is erased with the customer; null if it contains none.
  customer_id uuid,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, method, idempotency_key)
);
CREATE INDEX replayed_call_of_customer ON replayed_call (account_id, customer_id) WHERE customer_id IS NOT NULL;
CREATE INDEX replayed_call_by_age ON replayed_call (created_at);
-- Finds the responses that outlive their one-time tokens.
CREATE INDEX replayed_call_of_token_by_age ON replayed_call (created_at)
  WHERE method IN ('CreateToken', 'CreateCheckoutToken');

-- The schemas with which releases render responses from records. Rows are never deleted, because responses name them.
CREATE TABLE response_schema (
  -- The first bytes of the SHA-256 of `descriptors`.
  digest bytea PRIMARY KEY,
  -- A google.protobuf.FileDescriptorSet with payments.v1.Payment and everything that it refers to.
  descriptors bytea NOT NULL
);

-- Identifies the keys of this installation: at startup, each replica compares its own keys with them. A key cannot be
-- computed from its check value.
CREATE TABLE installation_key (
  -- `hash key`, or `vault key` and its id.
  name text PRIMARY KEY,
  -- A keyed hash of a constant.
  check_value bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Operators' actions, by command and in the dashboard. Rows are only added, in the commit of the action; only the count
-- of failed sign-ins is updated, within its minute. Rows contain no secrets.
CREATE TABLE audit_log (
  -- The nil UUID for an action on the whole installation.
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- A user and host, or a dashboard operator.
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

-- Operators' sessions in the dashboard.
CREATE TABLE operator_session (
  -- SHA-256 of the token in the cookie, so that readers of this table cannot sign in.
  token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
  -- The name of the operator key: `operator-` and the first digits of its SHA-256.
  actor text NOT NULL,
  -- SHA-256 of the operator key: removing a key from the configuration ends its sessions.
  key_hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When the session was last used: an idle session ends.
  seen_at timestamptz NOT NULL DEFAULT now()
);

-- Returns a UUIDv7 made with the database's clock; PostgreSQL has uuidv7() only since version 18. It consists of the
-- milliseconds, the version, and the last 19 digits of a random UUID.
CREATE FUNCTION uuid_v7_1() RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
    || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;

-- Rolls back a write if the writer has lost its transaction; the error has its own code.
CREATE FUNCTION raise_lost_1() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'another worker holds the transaction' USING ERRCODE = 'PLOST';
END $$;

-- Payments are claimed, and changes written, by functions in two forms: for one row, with everything that may go with it,
-- and for many plain rows, in one statement. Each form costs PostgreSQL much less than the other would for its number of
-- rows (docs/departures.md). Both are composed of these texts, so that they cannot say different things: a name in a text,
-- such as the_payment, is a parameter of the one form, and a column of the other form's input.
DO $compose$
DECLARE
  texts text[] := ARRAY[
    ['<payment columns>', $text$
      account_id, id, idempotency_key, request_hash, request_shape, status, record, merchant_order_id, card_last_four,
      card_fingerprint, created_at, currency, amount_minor_units, country, method_type, category, card_brand,
      customer_id, payer_email_hash, payer_document_hash$text$],
    ['<payment values>', $text$
      the_account, the_payment, the_key, the_hash, the_shape, the_status, the_record, the_order, the_last_four,
      the_fingerprint, created, the_currency, the_minor_units, the_country, the_method_type, the_category, the_brand,
      the_customer, the_email_hash, the_document_hash$text$],
    ['<attempt columns>', $text$
      account_id, id, payment_id, type, connection_id, connection_identity, status, amount_minor_units, currency,
      capture, merchant_reference, vaulted_token, method_kind, payer_due_at, catalogue_version, check_at$text$],
    ['<attempt values>', $text$
      the_account, the_transaction, the_payment, the_type, the_connection, the_identity, the_transaction_status,
      the_minor_units, the_currency, is_capture, the_merchant_reference, the_method, the_method_kind,
      payer_until, coalesce(the_catalogue_version, 0), leased_until$text$],
    ['<payment set>', $text$
      status = new_status, record = new_record, version = p.version + 1, updated_at = written_at,
      response_record = CASE WHEN p.response IS NOT NULL THEN coalesce(p.response_record, p.record) END,
      response = coalesce(p.response, new_response),
      event_sequence = p.event_sequence + CASE WHEN new_event IS NULL THEN 0 ELSE 1 END$text$],
    -- The version guards every write; the fence guards a write that leaves the outcome open.
    ['<may be written>', $text$
      p.version = the_version AND (NOT is_fenced OR the_fence = (
        SELECT t.fence FROM transaction t WHERE t.account_id = the_account AND t.id = the_transaction))$text$],
    -- If the fence differs, another worker or news about the transaction has already set its next check.
    ['<transaction set>', $text$
      status = new_transaction_status, reference = coalesce(new_reference, t.reference),
      provider_payment_id = coalesce(new_provider_payment_id, t.provider_payment_id), updated_at = written_at,
      awaits_payer = new_awaits_payer, fence = t.fence + 1,
      succeeded_at = CASE WHEN new_transaction_status = 'SUCCEEDED' THEN coalesce(t.succeeded_at, written_at)
        ELSE t.succeeded_at END,
      check_at = CASE WHEN t.fence = the_fence THEN checked_at ELSE t.check_at END$text$],
    -- The writer's new token, null if another worker holds the transaction; and whether the write is lost because of that.
    ['<held>', $text$
      CASE WHEN t.fence = the_fence + 1 THEN t.fence END AS fence,
      is_fenced AND t.fence <> the_fence + 1 AS is_lost$text$]
  ];
  -- Claims a payment's idempotency key, and inserts the payment with its first attempt, before the attempt is sent.
  -- Returns false if the key already exists. The same call uses the checkout session and the one-time token: if the
  -- session has changed, expired or reached its limit of payments, or the token is used or gone, a constraint is
  -- violated and nothing is written.
  claim_payment text := $function$
CREATE FUNCTION claim_payment_1(
  the_account uuid,
  the_payment uuid,
  the_key text,
  the_hash bytea,
  the_shape bytea,
  the_status text,
  the_record bytea,
  the_order text,
  the_last_four text,
  the_fingerprint uuid,
  created timestamptz,
  the_country text,
  the_method_type text,
  the_category text,
  the_brand text,
  the_customer uuid,
  the_email_hash uuid,
  the_document_hash uuid,
  the_transaction uuid,
  the_transaction_status text,
  the_type text,
  the_connection text,
  the_identity text,
  the_minor_units bigint,
  the_currency text,
  is_capture boolean,
  the_merchant_reference text,
  -- The stored method that it uses, or the card to be stored.
  the_method uuid,
  the_method_kind text,
  payer_due_in_s float8,
  lease_s float8,
  the_catalogue_version integer DEFAULT 0,
  -- A card of the customer, to be stored if the payment succeeds; null if there is none.
  card_shown bytea DEFAULT NULL,
  card_sealed text DEFAULT NULL,
  -- The checkout session, and the version that the payment was prepared from.
  used_session uuid DEFAULT NULL,
  used_version integer DEFAULT NULL,
  most_payments integer DEFAULT NULL,
  -- The one-time token.
  used_token uuid DEFAULT NULL
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  leased_until timestamptz := now() + make_interval(secs => lease_s);
  payer_until timestamptz := now() + make_interval(secs => payer_due_in_s);
  found_id uuid;
BEGIN
  INSERT INTO payment (<payment columns>) VALUES (<payment values>)
  ON CONFLICT (account_id, idempotency_key) DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO transaction (<attempt columns>) VALUES (<attempt values>);

  IF card_shown IS NOT NULL THEN
    -- Deleting the customer conflicts with this lock: the deletion either waits and then erases the card, or comes
    -- first, and then no card is stored.
    PERFORM 1 FROM customer c
    WHERE c.account_id = the_account AND c.id = the_customer AND c.deleted_at IS NULL FOR KEY SHARE;
    IF FOUND OR the_customer IS NULL THEN
      INSERT INTO vaulted_token (account_id, id, type, card, card_number, customer_id, country, fingerprint, created_at, active)
      VALUES (the_account, the_method, the_method_type, card_shown, card_sealed, the_customer, the_country,
        the_fingerprint, created, false);
    END IF;
  END IF;

  IF used_session IS NOT NULL THEN
    UPDATE checkout_session s SET payment_id = the_payment, payments = s.payments + 1
    WHERE s.account_id = the_account AND s.id = used_session AND s.version = used_version AND s.expires_at > now()
      AND s.payments < most_payments
    RETURNING s.id INTO found_id;
    INSERT INTO single_use (account_id, object_id, payment_id) VALUES (the_account, found_id, the_payment);
  END IF;

  IF used_token IS NOT NULL THEN
    found_id := NULL;
    UPDATE one_time_token t SET sealed = NULL
    WHERE t.account_id = the_account AND t.id = used_token AND t.sealed IS NOT NULL AND t.expires_at > now()
    RETURNING t.id INTO found_id;
    INSERT INTO single_use (account_id, object_id, payment_id) VALUES (the_account, found_id, the_payment);
  END IF;
  RETURN true;
END $$
$function$;
  -- Claims many plain payments in one statement, and returns those that are claimed.
  claim_payments text := $function$
CREATE FUNCTION claim_payments_1(
  the_accounts uuid[],
  the_payments uuid[],
  the_keys text[],
  the_hashes bytea[],
  the_shapes bytea[],
  the_statuses text[],
  the_records bytea[],
  the_orders text[],
  the_last_fours text[],
  the_fingerprints uuid[],
  times timestamptz[],
  the_countries text[],
  the_method_types text[],
  the_categories text[],
  the_brands text[],
  the_customers uuid[],
  the_email_hashes uuid[],
  the_document_hashes uuid[],
  the_transactions uuid[],
  the_transaction_statuses text[],
  the_types text[],
  the_connections text[],
  the_identities text[],
  the_minor_units bigint[],
  the_currencies text[],
  are_captures boolean[],
  the_merchant_references text[],
  the_methods uuid[],
  the_method_kinds text[],
  payers_due_in_s float8[],
  leases_s float8[],
  the_catalogue_versions integer[] DEFAULT NULL
) RETURNS SETOF uuid LANGUAGE plpgsql ROWS 16
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH input AS (
    SELECT *, now() + make_interval(secs => lease_s) AS leased_until,
      now() + make_interval(secs => payer_due_in_s) AS payer_until
    FROM unnest(the_accounts, the_payments, the_keys, the_hashes, the_shapes, the_statuses, the_records, the_orders,
      the_last_fours, the_fingerprints, times, the_countries, the_method_types, the_categories, the_brands,
      the_customers, the_email_hashes, the_document_hashes, the_transactions, the_transaction_statuses, the_types,
      the_connections, the_identities, the_minor_units, the_currencies, are_captures, the_merchant_references,
      the_methods, the_method_kinds, payers_due_in_s, leases_s, the_catalogue_versions)
      AS i (the_account, the_payment, the_key, the_hash, the_shape, the_status, the_record, the_order, the_last_four,
      the_fingerprint, created, the_country, the_method_type, the_category, the_brand, the_customer, the_email_hash,
      the_document_hash, the_transaction, the_transaction_status, the_type, the_connection, the_identity,
      the_minor_units, the_currency, is_capture, the_merchant_reference, the_method, the_method_kind,
      payer_due_in_s, lease_s, the_catalogue_version)
  ), claimed AS (
    INSERT INTO payment (<payment columns>) SELECT <payment values>
    FROM input
    ON CONFLICT (account_id, idempotency_key) DO NOTHING
    RETURNING id
  ), attempt AS (
    INSERT INTO transaction (<attempt columns>) SELECT <attempt values>
    FROM input JOIN claimed ON claimed.id = the_payment
  )
  SELECT id FROM claimed;
END $$
$function$;
  -- Writes every change that one report makes to a payment, or nothing: its record and books, the reported transaction, an added
  -- transaction, another transaction, the stored method, the checkout session, and the event. The version guards every
  -- write; the fence guards a write that leaves the outcome open.
  --
  -- The name ends with a version number: a release that needs another signature adds a function, because the previous release
  -- keeps calling this one. Every statement takes the account from the parameter the_account.
  write_change text := $function$
CREATE FUNCTION write_change_1(
  the_account uuid,
  the_payment uuid,
  -- The version that the change was decided from.
  the_version integer,
  new_status text,
  new_record bytea,
  -- Type of the event; null if the record does not change.
  new_event text,
  -- The schema of the response (response_schema); null if the change has no response.
  new_response bytea,
  -- The reported transaction; null if there is only an added one.
  the_transaction uuid,
  new_transaction_status text,
  new_reference text,
  new_provider_payment_id text,
  new_awaits_payer boolean,
  -- The writer's fencing token, and true if only the last worker to lease the transaction may write this.
  the_fence integer,
  is_fenced boolean,
  -- Seconds until its next check; null if there is none.
  check_in_s float8,
  -- The books; null leaves them unchanged.
  new_captured bigint DEFAULT NULL,
  new_refunded bigint DEFAULT NULL,
  new_released boolean DEFAULT NULL,
  -- A transaction to add, or to change if it exists.
  added_transaction uuid DEFAULT NULL,
  added_type text DEFAULT NULL,
  added_parent uuid DEFAULT NULL,
  added_status text DEFAULT NULL,
  added_connection text DEFAULT NULL,
  added_identity text DEFAULT NULL,
  added_minor_units bigint DEFAULT NULL,
  added_currency text DEFAULT NULL,
  added_capture boolean DEFAULT NULL,
  added_final boolean DEFAULT NULL,
  added_reference text DEFAULT NULL,
  added_provider_payment_id text DEFAULT NULL,
  added_token uuid DEFAULT NULL,
  added_method_kind text DEFAULT NULL,
  added_payer_due_in_s float8 DEFAULT NULL,
  added_catalogue_version integer DEFAULT 0,
  -- For an attempt about to be sent: the lease of its caller, whose fencing token is 0. Null if it has no caller.
  added_check_in_s float8 DEFAULT NULL,
  -- Another transaction that changes: seconds until its next check and, if it has ended, its status and reference.
  the_other uuid DEFAULT NULL,
  other_check_in_s float8 DEFAULT NULL,
  other_status text DEFAULT NULL,
  other_reference text DEFAULT NULL,
  -- The stored method's fate: keep, or drop if it still waits for the outcome.
  method_fate text DEFAULT NULL,
  the_method uuid DEFAULT NULL,
  method_at timestamptz DEFAULT NULL,
  -- An encoded StoredPaymentMethod, for the event of a method's first storage; null for no event.
  method_record bytea DEFAULT NULL,
  -- The checkout session that may be paid again.
  reopened_session uuid DEFAULT NULL,
  -- The checkout session that this payment uses again, because the payment succeeded after it had failed.
  retaken_session uuid DEFAULT NULL,
  -- When the reported event happened, according to the provider; null if it does not say.
  new_reported_at timestamptz DEFAULT NULL,
  -- The amount that the reported operation has moved; null leaves it unchanged.
  new_minor_units bigint DEFAULT NULL,
  -- written; outdated: the caller must decide again from the current payment; lost: another worker holds the
  -- transaction.
  OUT result text,
  -- The writer's new fencing token; null if it no longer holds the transaction.
  OUT fence integer,
  OUT has_event boolean,
  -- The response stored earlier, and its record; null if there was none.
  OUT earlier_response bytea,
  OUT earlier_record bytea
) LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  written_at timestamptz := now();
  checked_at timestamptz := written_at + make_interval(secs => check_in_s);
  number integer;
  stored record;
BEGIN
  has_event := false;
  UPDATE payment p
  SET <payment set>,
    captured_minor_units = coalesce(new_captured, p.captured_minor_units),
    refunded_minor_units = coalesce(new_refunded, p.refunded_minor_units),
    released = coalesce(new_released, p.released),
    open_operation = CASE WHEN p.open_operation = the_transaction AND new_transaction_status NOT IN ('CREATED', 'PENDING')
      THEN NULL ELSE p.open_operation END
  WHERE p.account_id = the_account AND p.id = the_payment AND <may be written>
  RETURNING p.event_sequence, p.response, p.response_record INTO number, earlier_response, earlier_record;
  IF NOT FOUND THEN
    SELECT p.version, p.record = new_record AS is_same, coalesce(t.response, p.response) AS response,
      CASE WHEN t.response IS NULL THEN p.response_record ELSE t.response_record END AS shown INTO stored
    -- Without a reported transaction, the join looks for the account's id, which no transaction has: a distributed engine
    -- refuses a join whose condition is null.
    FROM payment p LEFT JOIN transaction t
      ON t.account_id = the_account AND t.id = coalesce(the_transaction, the_account)
    WHERE p.account_id = the_account AND p.id = the_payment;
    IF stored.version = the_version + 1 AND stored.is_same AND (added_check_in_s IS NULL OR 0 = (
      SELECT t.fence FROM transaction t WHERE t.account_id = the_account AND t.id = added_transaction)) THEN
      -- The call was repeated after a lost acknowledgement, and the change is already written. Its caller still holds
      -- the attempt that it began.
      result := 'written';
      IF stored.shown <> new_record THEN
        earlier_response := stored.response;
        earlier_record := stored.shown;
      END IF;
    ELSE
      result := CASE WHEN stored.version = the_version THEN 'lost' ELSE 'outdated' END;
    END IF;
    RETURN;
  END IF;
  result := 'written';

  IF the_transaction IS NOT NULL THEN
    UPDATE transaction t
    SET <transaction set>,
      -- greatest ignores nulls.
      reported_at = greatest(t.reported_at, new_reported_at),
      amount_minor_units = coalesce(new_minor_units, t.amount_minor_units),
      response = CASE WHEN t.method IS NOT NULL THEN coalesce(t.response, new_response) END,
      response_record = CASE WHEN t.method IS NOT NULL THEN coalesce(t.response_record, new_record) END
    WHERE t.account_id = the_account AND t.id = the_transaction AND t.payment_id = the_payment
    RETURNING <held>, t.response, t.response_record INTO stored;
    IF NOT FOUND OR stored.is_lost THEN
      -- Another worker has leased the transaction since the read above, or the payment has no such transaction.
      PERFORM raise_lost_1();
    END IF;
    fence := stored.fence;
    -- An operation's response is stored in its transaction.
    IF stored.response IS NOT NULL THEN
      earlier_response := stored.response;
      earlier_record := stored.response_record;
    END IF;
  END IF;
  IF earlier_record IS NULL OR earlier_record = new_record THEN
    earlier_response := NULL;
    earlier_record := NULL;
  END IF;

  IF added_transaction IS NOT NULL THEN
    INSERT INTO transaction AS t (account_id, id, payment_id, type, parent_id, connection_id, connection_identity, status,
      amount_minor_units, currency, capture, final, reference, provider_payment_id, reported_at, vaulted_token, method_kind,
      payer_due_at, catalogue_version, succeeded_at, check_at, fence)
    VALUES (the_account, added_transaction, the_payment, added_type, added_parent, added_connection, added_identity,
      added_status, added_minor_units, added_currency, added_capture, added_final, added_reference,
      added_provider_payment_id, CASE WHEN the_transaction IS NULL THEN new_reported_at END, added_token,
      added_method_kind, written_at + make_interval(secs => added_payer_due_in_s), added_catalogue_version,
      CASE WHEN added_status = 'SUCCEEDED' THEN written_at END, written_at + make_interval(secs => added_check_in_s), CASE WHEN added_check_in_s IS NULL THEN 1 ELSE 0 END)
    ON CONFLICT (account_id, id) DO UPDATE
    SET status = excluded.status, succeeded_at = coalesce(t.succeeded_at, excluded.succeeded_at),
      provider_payment_id = coalesce(t.provider_payment_id, excluded.provider_payment_id),
      amount_minor_units = excluded.amount_minor_units, updated_at = excluded.updated_at;
  END IF;

  IF the_other IS NOT NULL THEN
    UPDATE transaction t
    SET check_at = written_at + make_interval(secs => other_check_in_s), fence = t.fence + 1,
      status = coalesce(other_status, t.status), reference = coalesce(other_reference, t.reference),
      awaits_payer = t.awaits_payer AND other_status IS NULL,
      succeeded_at = CASE WHEN other_status = 'SUCCEEDED' THEN coalesce(t.succeeded_at, written_at)
        ELSE t.succeeded_at END,
      updated_at = CASE WHEN other_status IS NULL THEN t.updated_at ELSE written_at END
    WHERE t.account_id = the_account AND t.id = the_other AND t.payment_id = the_payment;
  END IF;

  IF method_fate = 'keep' THEN
    -- Locked first, since a concurrent deletion of the customer may be erasing the method; in that case, there is
    -- no event either.
    SELECT v.active INTO stored FROM vaulted_token v
    WHERE v.account_id = the_account AND v.id = the_method AND v.status = 'ENROLLED' FOR NO KEY UPDATE;
    IF FOUND THEN
      UPDATE vaulted_token v SET active = true, last_used_at = method_at, updated_at = method_at
      WHERE v.account_id = the_account AND v.id = the_method;
      IF NOT stored.active AND method_record IS NOT NULL AND EXISTS (
        SELECT 1 FROM webhook w
        WHERE w.account_id = the_account AND w.active AND 'enrollment.enroll' = ANY (w.events)
      ) THEN
        INSERT INTO event (account_id, id, type, payment_id, sequence, record)
        VALUES (the_account, uuid_v7_1(), 'enrollment.enroll', '00000000-0000-0000-0000-000000000000', 0, method_record);
      END IF;
    END IF;
  ELSIF method_fate = 'drop' THEN
    -- A method that is ENROLLED and not active still waits for its payment.
    DELETE FROM vaulted_token v
    WHERE v.account_id = the_account AND v.id = the_method AND NOT v.active AND v.status = 'ENROLLED';
  END IF;

  IF reopened_session IS NOT NULL THEN
    DELETE FROM single_use u
    WHERE u.account_id = the_account AND u.object_id = reopened_session AND u.payment_id = the_payment;
  END IF;

  IF retaken_session IS NOT NULL THEN
    -- Lock the session before inserting its use, as a claim does. A session without terms is never used. If another
    -- payment has used the session meanwhile, the session continues to show that payment, but that payment's failure no
    -- longer reopens the session.
    PERFORM 1 FROM checkout_session s
    WHERE s.account_id = the_account AND s.id = retaken_session AND s.expires_at IS NOT NULL FOR NO KEY UPDATE;
    IF FOUND THEN
      INSERT INTO single_use (account_id, object_id, payment_id) VALUES (the_account, retaken_session, the_payment)
      ON CONFLICT (account_id, object_id) DO NOTHING;
      IF FOUND THEN
        UPDATE checkout_session s SET payment_id = the_payment
        WHERE s.account_id = the_account AND s.id = retaken_session;
      ELSE
        UPDATE single_use u SET payment_id = the_payment
        WHERE u.account_id = the_account AND u.object_id = retaken_session;
      END IF;
    END IF;
  END IF;

  IF new_event IS NOT NULL AND EXISTS (
    SELECT 1 FROM webhook w WHERE w.account_id = the_account AND w.active AND new_event = ANY (w.events)
  ) THEN
    INSERT INTO event (account_id, id, type, payment_id, sequence, record)
    VALUES (the_account, uuid_v7_1(), new_event, the_payment, number, new_record);
    has_event := true;
  END IF;
END $$
$function$;
  -- Does the same as write_change_1 for many changes that write only a payment and its attempt, as on the main path.
  -- Leaves out changes that it cannot write; write_change_1 then reports why. One statement updates the rows of all
  -- changes.
  write_outcomes text := $function$
CREATE FUNCTION <name>(
  <parameter>,
  the_payments uuid[],
  the_versions integer[],
  new_statuses text[],
  new_records bytea[],
  new_events text[],
  new_responses bytea[],
  the_transactions uuid[],
  new_transaction_statuses text[],
  new_references text[],
  new_provider_payment_ids text[],
  new_awaits_payers boolean[],
  the_fences integer[],
  are_fenced boolean[],
  checks_in_s float8[]
) RETURNS TABLE (
  -- The position of the change, from 1.
  place bigint,
  fence integer,
  has_event boolean,
  earlier_response bytea,
  earlier_record bytea
) LANGUAGE plpgsql ROWS 16
SET enable_seqscan = off <settings> AS $$
#variable_conflict use_column
DECLARE
  written record;
BEGIN
  FOR written IN
    WITH input AS (
      SELECT *, now() AS written_at, now() + make_interval(secs => check_in_s) AS checked_at
      FROM unnest(<accounts>the_payments, the_versions, new_statuses, new_records, new_events, new_responses, the_transactions,
        new_transaction_statuses, new_references, new_provider_payment_ids, new_awaits_payers, the_fences, are_fenced,
        checks_in_s)
        WITH ORDINALITY
        AS i (<account>the_payment, the_version, new_status, new_record, new_event, new_response, the_transaction,
        new_transaction_status, new_reference, new_provider_payment_id, new_awaits_payer, the_fence, is_fenced,
        check_in_s, n)
    ), changed AS (
      UPDATE payment p
      SET <payment set>
      FROM input
      WHERE p.account_id = the_account AND <payment> p.id = the_payment AND <may be written>
      RETURNING n, p.event_sequence AS number, CASE WHEN p.response_record <> new_record THEN p.response END AS response,
        p.response_record
    ), moved AS (
      UPDATE transaction t
      SET <transaction set>
      FROM input JOIN changed USING (n)
      WHERE t.account_id = the_account AND <transaction> t.id = the_transaction AND t.payment_id = the_payment
      RETURNING n, <held>
    )
    SELECT n, the_account AS account_id, the_payment, new_event, new_record, number, response, response_record, m.fence,
      coalesce(m.is_lost, true) AS is_lost,
      EXISTS (
        SELECT 1 FROM webhook w WHERE w.account_id = the_account AND w.active AND new_event = ANY (w.events)
      ) AS has_event
    FROM input JOIN changed USING (n) LEFT JOIN moved m USING (n)
  LOOP
    IF written.is_lost THEN
      PERFORM raise_lost_1();
    END IF;
    place := written.n;
    fence := written.fence;
    has_event := written.has_event;
    earlier_response := written.response;
    earlier_record := CASE WHEN written.response IS NOT NULL THEN written.response_record END;
    IF has_event THEN
      INSERT INTO event (account_id, id, type, payment_id, sequence, record)
      VALUES (written.account_id, uuid_v7_1(), written.new_event, written.the_payment, written.number, written.new_record);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$
$function$;
  of_any text[] := ARRAY[
    ['<name>', 'write_outcomes_1'], ['<parameter>', 'the_accounts uuid[]'], ['<accounts>', 'the_accounts, '],
    ['<account>', 'the_account, '], ['<payment>', ''], ['<transaction>', ''],
    ['<settings>', 'SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan']
  ];
  -- For changes of one account: a distributed engine runs the call on the account's node. Conditions with ANY make every
  -- scan read only these rows, whichever table that engine's plan begins with.
  of_account text[] := ARRAY[
    ['<name>', 'write_outcomes_of_account_1'], ['<parameter>', 'the_account uuid'], ['<accounts>', ''], ['<account>', ''],
    ['<payment>', 'p.id = ANY (the_payments) AND'], ['<transaction>', 't.id = ANY (the_transactions) AND'],
    ['<settings>', '']
  ];
  functions text[] := ARRAY[claim_payment, claim_payments, write_change, write_outcomes, write_outcomes];
  pair text[];
BEGIN
  FOR i IN 1 .. 5 LOOP
    FOREACH pair SLICE 1 IN ARRAY texts || CASE i WHEN 5 THEN of_account ELSE of_any END LOOP
      functions[i] := replace(functions[i], pair[1], pair[2]);
    END LOOP;
    EXECUTE functions[i];
  END LOOP;
END $compose$;

-- Claims many plain payments of one account, in order, and returns those that are claimed. A distributed engine runs the
-- call on the account's node, and would copy the rows of an INSERT with SELECT.
CREATE FUNCTION claim_payments_of_account_1(
  the_account uuid,
  the_payments uuid[],
  the_keys text[],
  the_hashes bytea[],
  the_shapes bytea[],
  the_statuses text[],
  the_records bytea[],
  the_orders text[],
  the_last_fours text[],
  the_fingerprints uuid[],
  times timestamptz[],
  the_countries text[],
  the_method_types text[],
  the_categories text[],
  the_brands text[],
  the_customers uuid[],
  the_email_hashes uuid[],
  the_document_hashes uuid[],
  the_transactions uuid[],
  the_transaction_statuses text[],
  the_types text[],
  the_connections text[],
  the_identities text[],
  the_minor_units bigint[],
  the_currencies text[],
  are_captures boolean[],
  the_merchant_references text[],
  the_methods uuid[],
  the_method_kinds text[],
  payers_due_in_s float8[],
  leases_s float8[],
  the_catalogue_versions integer[] DEFAULT NULL
) RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. cardinality(the_payments) LOOP
    IF claim_payment_1(the_account, the_payments[i], the_keys[i], the_hashes[i], the_shapes[i], the_statuses[i],
      the_records[i], the_orders[i], the_last_fours[i], the_fingerprints[i], times[i], the_countries[i],
      the_method_types[i], the_categories[i], the_brands[i], the_customers[i], the_email_hashes[i], the_document_hashes[i],
      the_transactions[i], the_transaction_statuses[i], the_types[i], the_connections[i], the_identities[i],
      the_minor_units[i], the_currencies[i], are_captures[i], the_merchant_references[i], the_methods[i],
      the_method_kinds[i], payers_due_in_s[i], leases_s[i], coalesce(the_catalogue_versions[i], 0)) THEN
      RETURN NEXT the_payments[i];
    END IF;
  END LOOP;
END $$;

-- Claims an operation: reserves its amount, opens it and inserts its transaction. The first statement checks the limits
-- against the rows, so no claim exceeds them, whatever its caller read earlier and whoever else claims. Returns false
-- if the claim is refused. A key that another operation holds violates the unique index, which rolls everything back. A
-- merchant's reference can be used once per payment and method. It needs no index, since every claim changes the
-- version that other claims check.
CREATE FUNCTION claim_operation_1(
  the_account uuid,
  the_payment uuid,
  -- The version of the payment on which the operation was planned.
  the_version integer,
  the_status text,
  the_record bytea,
  the_transaction uuid,
  -- CAPTURE, CANCEL or REFUND.
  the_type text,
  -- The purchase or authorization; for a cancel that is not final, the attempt to close.
  the_base uuid,
  -- The transaction that the operation acts on.
  the_parent uuid,
  the_connection text,
  the_identity text,
  the_minor_units bigint,
  the_currency text,
  is_final boolean,
  lease_s float8,
  the_method text,
  the_key text,
  the_hash bytea,
  the_shape bytea,
  the_merchant_reference text,
  the_catalogue_version integer DEFAULT 0
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  leased_until timestamptz := now() + make_interval(secs => lease_s);
  claimed_at timestamptz := now();
BEGIN
  UPDATE payment p
  SET open_operation = the_transaction, version = p.version + 1, status = the_status, record = the_record,
    updated_at = claimed_at,
    response_record = CASE WHEN p.response IS NOT NULL THEN coalesce(p.response_record, p.record) END
  FROM transaction base
  WHERE p.account_id = the_account AND p.id = the_payment AND p.version = the_version AND p.open_operation IS NULL
    AND base.account_id = the_account AND base.id = the_base AND base.payment_id = the_payment
    AND CASE
      WHEN the_type = 'CANCEL' AND NOT is_final THEN base.status IN ('CREATED', 'PENDING') AND base.awaits_payer
      WHEN base.status <> 'SUCCEEDED' THEN false
      WHEN the_type = 'CAPTURE' THEN
        NOT base.capture AND NOT p.released AND p.captured_minor_units + the_minor_units <= base.amount_minor_units
      WHEN the_type = 'CANCEL' THEN
        NOT base.capture AND NOT p.released AND p.captured_minor_units < base.amount_minor_units
      WHEN the_type = 'REFUND' THEN
        p.refunded_minor_units + the_minor_units
          <= CASE WHEN base.capture THEN base.amount_minor_units ELSE p.captured_minor_units END
        AND the_minor_units + (
          SELECT coalesce(sum(r.amount_minor_units), 0) FROM transaction r
          WHERE r.account_id = the_account AND r.payment_id = the_payment AND r.type = 'REFUND' AND r.parent_id = the_parent
            AND r.status IN ('SUCCEEDED', 'PENDING')
        ) <= (
          SELECT t.amount_minor_units FROM transaction t
          WHERE t.account_id = the_account AND t.id = the_parent AND t.payment_id = the_payment
        )
      ELSE false
    END
    AND NOT EXISTS (
      SELECT 1 FROM transaction o
      WHERE o.account_id = the_account AND o.payment_id = the_payment AND o.method = the_method
        AND o.merchant_reference = the_merchant_reference
    );
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO transaction (account_id, id, payment_id, type, parent_id, connection_id, connection_identity, status,
    amount_minor_units, currency, capture, final, check_at, method, idempotency_key, request_hash, request_shape,
    merchant_reference, catalogue_version)
  VALUES (the_account, the_transaction, the_payment, the_type, the_parent, the_connection, the_identity, 'PENDING',
    the_minor_units, the_currency, false, is_final, leased_until, the_method, the_key, the_hash, the_shape,
    the_merchant_reference, the_catalogue_version);
  RETURN true;
END $$;

-- Creates the deliveries of an account's events, unless another replica holds or has relayed them. Returns the number of
-- events relayed, and the webhooks with new deliveries.
CREATE FUNCTION relay_events_1(the_account uuid, the_events uuid[], OUT relayed integer, OUT webhooks uuid[])
LANGUAGE plpgsql AS $$
DECLARE
  open record;
  receiver uuid;
BEGIN
  relayed := 0;
  webhooks := '{}';
  FOR open IN
    SELECT e.id, e.type FROM event e
    WHERE e.account_id = the_account AND e.id = ANY (the_events) AND e.relayed_at IS NULL
    ORDER BY e.created_at FOR UPDATE SKIP LOCKED
  LOOP
    FOR receiver IN
      SELECT w.id FROM webhook w WHERE w.account_id = the_account AND w.active AND open.type = ANY (w.events)
    LOOP
      INSERT INTO delivery (account_id, id, webhook_id, event_id) VALUES (the_account, uuid_v7_1(), receiver, open.id);
      webhooks := webhooks || receiver;
    END LOOP;
    UPDATE event e SET relayed_at = now() WHERE e.account_id = the_account AND e.id = open.id;
    relayed := relayed + 1;
  END LOOP;
END $$;
