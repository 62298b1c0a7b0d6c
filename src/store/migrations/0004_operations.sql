-- A payment's whole life: captures, cancels and refunds are transactions beside the purchase. Every column has a constant
-- default, so that nothing is rewritten and the release before this one goes on inserting. The indexes follow in 0010.

-- What operations have done to the payment, in minor units of its currency; the record says the same in decimals.
ALTER TABLE payment
  ADD COLUMN captured_minor_units bigint NOT NULL DEFAULT 0,
  ADD COLUMN refunded_minor_units bigint NOT NULL DEFAULT 0,
  -- Nothing more may be captured: canceled, lapsed, or the last capture that the provider takes was made.
  ADD COLUMN released boolean NOT NULL DEFAULT false,
  -- The transaction of the operation that is open: one at a time, so that its bounds hold.
  ADD COLUMN open_operation uuid,
  -- Counts the writes of operations: a record made from an older version is not written.
  ADD COLUMN version integer NOT NULL DEFAULT 0,
  -- NOT VALID: the rows that are there hold the defaults, and are not scanned under the lock.
  ADD CONSTRAINT payment_captured_not_negative CHECK (captured_minor_units >= 0) NOT VALID,
  ADD CONSTRAINT payment_refunded_not_negative CHECK (refunded_minor_units >= 0) NOT VALID;

ALTER TABLE transaction
  -- The nil UUID for a transaction that the release before this one inserted.
  ADD COLUMN account_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  -- payments.v1.Transaction.Type; PURCHASE also stands for an authorization that is told as one.
  ADD COLUMN type text NOT NULL DEFAULT 'PURCHASE',
  -- The transaction that a capture, cancel or refund acts on.
  ADD COLUMN parent_id uuid,
  -- What the connector told of it for later calls: the provider's own id, say.
  ADD COLUMN reference text,
  -- Of a capture: none may follow.
  ADD COLUMN final boolean NOT NULL DEFAULT false,
  -- Of an operation: the rpc that was called, its idempotency key there, and the hash of its request. Create's stand with
  -- the payment.
  ADD COLUMN method text,
  ADD COLUMN idempotency_key text COLLATE "C",
  ADD COLUMN request_hash bytea,
  ADD COLUMN request_shape bytea,
  -- The response to an operation, as REST and as a record; once given it never changes.
  ADD COLUMN response bytea,
  ADD COLUMN response_record bytea,
  -- A verification is of amount 0.
  DROP CONSTRAINT transaction_amount_minor_units_check,
  ADD CONSTRAINT transaction_amount_not_negative CHECK (amount_minor_units >= 0) NOT VALID,
  ADD CONSTRAINT transaction_reference_length CHECK (length(reference) <= 512) NOT VALID;
