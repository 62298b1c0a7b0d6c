-- migrate: concurrently

-- A payer's payments, by identity document, likewise.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_payer_document ON payment (account_id, payer_document_hash, created_at, id)
  WHERE payer_document_hash IS NOT NULL;
