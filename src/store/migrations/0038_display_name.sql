-- The name under which payers know the merchant, for the checkout page; '' for none. The account's own name is its
-- operator's, and was never meant for payers.
ALTER TABLE account ADD COLUMN display_name text NOT NULL DEFAULT '' CHECK (char_length(display_name) <= 100);
