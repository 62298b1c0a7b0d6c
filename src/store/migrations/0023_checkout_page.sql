-- The checkout page: its payer names a session, and nothing else. The index is not unique, since the key leads with the
-- account. Both tables are small when this runs: sessions could not be made before.
CREATE INDEX checkout_session_by_id ON checkout_session (id);
CREATE INDEX public_key_of_account ON public_key (account_id);
