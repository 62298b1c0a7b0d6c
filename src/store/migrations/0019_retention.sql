-- When the payer's personal data was erased from the payment; null while it was not. A later operation may bring more of it,
-- which updated_at tells.
ALTER TABLE payment ADD COLUMN personal_data_erased_at timestamptz;
