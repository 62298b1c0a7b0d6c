-- Whether an authorization is told to the account as one (AUTHORIZE, PENDING / AUTHORIZED), or as the interface shows it
-- (PURCHASE, SUCCEEDED / APPROVED). From here on transaction.type is AUTHORIZE for the former, and VERIFY for a card that
-- was only checked.
ALTER TABLE account ADD COLUMN tells_authorized boolean NOT NULL DEFAULT false;
