-- Customers that merchants make. Those that were there have no identifier of the merchant's.
ALTER TABLE customer
  ADD COLUMN merchant_customer_id text COLLATE "C",
  -- A JSON array of objects with `key` and `value`.
  ADD COLUMN metadata text NOT NULL DEFAULT '[]',
  ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now(),
  -- The person was erased; only the row's key is left.
  ADD COLUMN deleted_at timestamptz;
CREATE UNIQUE INDEX customer_merchant_id ON customer (account_id, merchant_customer_id)
  WHERE merchant_customer_id IS NOT NULL;

-- Calls that made an object, by their idempotency key: a repeat gets the first response again. Written in the commit that
-- makes the object; payments and operations keep their keys themselves.
CREATE TABLE replayed_call (
  account_id uuid NOT NULL,
  -- Name of the rpc.
  method text NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  request_hash bytea NOT NULL,
  request_shape bytea NOT NULL,
  -- The response message, encoded; null only within the transaction that makes the object.
  response bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, method, idempotency_key)
);
-- Rows come in the order of time, so a few bytes a block find the old ones.
CREATE INDEX replayed_call_age ON replayed_call USING brin (created_at);
