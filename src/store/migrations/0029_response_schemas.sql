-- The schemas by which releases render responses from records: a response that is stored names its schema instead of
-- holding all that it says a second time. A row stays as long as responses name it, which is for ever.
CREATE TABLE response_schema (
  -- The first bytes of the SHA-256 of `descriptors`. Empty: while this row is there, responses are stored in whole.
  digest bytea PRIMARY KEY,
  -- A google.protobuf.FileDescriptorSet with payments.v1.Payment and all that it refers to.
  descriptors bytea NOT NULL
);

-- Replicas of the release before send a stored response as it is, so they need it whole. They may be there if the
-- database was used before; the next release takes the row away.
INSERT INTO response_schema (digest, descriptors) SELECT '', '' WHERE EXISTS (SELECT FROM account);
