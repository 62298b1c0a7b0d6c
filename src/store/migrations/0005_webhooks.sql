-- Where an account is told of changes.
CREATE TABLE webhook (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  url text NOT NULL,
  description text NOT NULL,
  -- The names of the events that it wants.
  events text[] NOT NULL,
  active boolean NOT NULL DEFAULT true,
  -- Why the service turned it off by itself.
  disabled_reason text,
  -- The signing secret as a JWE bound to the webhook's id. Nothing else in the database holds it.
  secret text NOT NULL,
  -- The secret before it, which signs as well for a while.
  previous_secret text,
  previous_secret_until timestamptz,
  -- Since when no delivery has succeeded; null while all is well.
  failing_since timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);

-- How many changes of a payment were told, which numbers its events.
ALTER TABLE payment ADD COLUMN event_sequence integer NOT NULL DEFAULT 0;

-- The outbox: one row a change that a webhook wants to hear of, written in the statement that makes the change.
CREATE TABLE event (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  type text NOT NULL,
  payment_id uuid NOT NULL,
  -- Counts the changes of the payment: a later one has a higher number.
  sequence integer NOT NULL,
  -- An encoded payments.v1.Payment: the record after the change.
  record bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When its deliveries were made.
  relayed_at timestamptz,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX event_open ON event (created_at) WHERE relayed_at IS NULL;
-- Rows come in the order of time, so a few bytes a block find the old ones.
CREATE INDEX event_age ON event USING brin (created_at);

-- One row an event and webhook.
CREATE TABLE delivery (
  account_id uuid NOT NULL,
  -- UUIDv7, so that the newest of a webhook are found by id.
  id uuid NOT NULL,
  webhook_id uuid NOT NULL,
  event_id uuid NOT NULL,
  -- PENDING, DELIVERED or FAILED.
  status text NOT NULL DEFAULT 'PENDING',
  -- Counts the takers of this delivery and is their fencing token.
  attempts integer NOT NULL DEFAULT 0,
  -- Counts the attempts of the schedule of retries, which a redelivery begins anew.
  retry integer NOT NULL DEFAULT 0,
  -- When it is sent next; while it is being sent, the end of its lease. Null once it is DELIVERED or FAILED.
  due_at timestamptz DEFAULT now(),
  response_status integer,
  error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  delivered_at timestamptz,
  PRIMARY KEY (account_id, id)
) WITH (fillfactor = 80);
CREATE INDEX delivery_of_webhook ON delivery (account_id, webhook_id, id);
CREATE INDEX delivery_due ON delivery (account_id, webhook_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_age ON delivery USING brin (created_at);
