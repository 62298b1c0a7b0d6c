-- Stored methods of customers. The release before this one knows `active` only, which stays true exactly while a payment
-- may use the method.
ALTER TABLE vaulted_token
  -- payments.v1.StoredPaymentMethod.Status. A card that waits for its payment is ENROLLED and not active.
  ADD COLUMN status text NOT NULL DEFAULT 'ENROLLED',
  -- Keyed hash of a card's number: the same card of the same customer is one method. Null for one of the release before.
  ADD COLUMN fingerprint uuid,
  ADD COLUMN country text NOT NULL DEFAULT '',
  ADD COLUMN last_used_at timestamptz,
  ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now(),
  -- The number goes when the method is ended; what may be told of the card stays.
  DROP CONSTRAINT vaulted_token_check,
  ADD CONSTRAINT vaulted_token_number_of_card CHECK (card_number IS NULL OR card IS NOT NULL) NOT VALID;
