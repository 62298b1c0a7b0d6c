-- What a notification tells of a dispute besides its stage: which one it is, since a payment may be disputed again, and
-- how much of the payment is disputed.
ALTER TABLE notification ADD COLUMN dispute_reference text, ADD COLUMN disputed_minor_units bigint,
  ADD COLUMN disputed_currency text;
