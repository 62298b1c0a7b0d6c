-- migrate: concurrently

-- A payer's payments, by e-mail address. Once the personal data is erased, the payment leaves the index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_payer_email ON payment (account_id, payer_email_hash, created_at, id)
  WHERE payer_email_hash IS NOT NULL;
