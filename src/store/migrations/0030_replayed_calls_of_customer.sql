-- migrate: concurrently
-- The responses that tell of a person, so that they are erased with the customer. Both messages begin with fields that are
-- always there, so the customer's id has a fixed place: the first field of one, the fourth of the other. (A field that
-- holds a UUID takes 38 bytes.) It is found there in the responses of releases before, too.
CREATE INDEX CONCURRENTLY IF NOT EXISTS replayed_call_of_customer ON replayed_call
  (account_id, substring(response FROM CASE method WHEN 'CreateCustomer' THEN 3 ELSE 117 END FOR 36))
  WHERE method IN ('CreateCustomer', 'EnrollPaymentMethod');
