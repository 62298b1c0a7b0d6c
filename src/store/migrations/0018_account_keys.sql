-- In the order in which statements lock these tables.
ALTER TABLE checkout_session
  DROP CONSTRAINT checkout_session_customer_id_fkey,
  DROP CONSTRAINT checkout_session_pkey,
  ADD CONSTRAINT checkout_session_pkey PRIMARY KEY USING INDEX checkout_session_key;
ALTER TABLE customer
  DROP CONSTRAINT customer_pkey,
  ADD CONSTRAINT customer_pkey PRIMARY KEY USING INDEX customer_key;
ALTER TABLE checkout_session
  ADD CONSTRAINT checkout_session_customer FOREIGN KEY (account_id, customer_id) REFERENCES customer (account_id, id);
ALTER TABLE vaulted_token
  DROP CONSTRAINT vaulted_token_pkey,
  ADD CONSTRAINT vaulted_token_pkey PRIMARY KEY USING INDEX vaulted_token_key;
ALTER TABLE secret_key
  DROP CONSTRAINT secret_key_pkey,
  ADD CONSTRAINT secret_key_pkey PRIMARY KEY USING INDEX secret_key_key;
