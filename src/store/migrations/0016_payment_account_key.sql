-- One table a file, each for a moment: a statement on several of them could wait for one while it holds another.
ALTER TABLE payment
  DROP CONSTRAINT payment_pkey,
  ADD CONSTRAINT payment_pkey PRIMARY KEY USING INDEX payment_key;
