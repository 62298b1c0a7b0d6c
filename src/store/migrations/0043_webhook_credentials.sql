-- Credentials that a receiver wants beside the signature: a JSON object, sealed as the signing secret is and bound to the
-- webhook's id; and the names of the headers that they make, to be shown.
ALTER TABLE webhook ADD COLUMN credentials text,
  ADD COLUMN credential_headers text[] NOT NULL DEFAULT '{}';
