-- Digest of the request fields that request_hash covers. Hashes of releases that know different fields are not compared:
-- a request that cannot be compared gets the stored response. Null for a payment that the release before this one claimed.
ALTER TABLE payment ADD COLUMN request_shape bytea;
