-- Rows of the release before this one have the nil UUID for their account until a replica of this one has given it to them
-- (src/payments/backfill-payments.ts).
ALTER TABLE transaction
  DROP CONSTRAINT transaction_pkey,
  ADD CONSTRAINT transaction_pkey PRIMARY KEY USING INDEX transaction_key;
