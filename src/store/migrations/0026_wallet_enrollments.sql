-- Wallets that are enrolled by redirect: what is known of one until its payer has agreed, and where it can be charged.
ALTER TABLE vaulted_token
  ADD COLUMN connection_id text,
  -- The account at the provider that the connection stood for; no other is asked about it.
  ADD COLUMN connection_identity text,
  ADD COLUMN redirect_url text,
  ADD COLUMN callback_url text,
  -- When the provider is asked again; null once it is known.
  ADD COLUMN follow_up_at timestamptz,
  ADD COLUMN expires_at timestamptz;
