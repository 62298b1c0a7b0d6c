-- When a notification last had the transaction looked up: the next look-up waits for a while, whichever process makes it.
ALTER TABLE transaction ADD COLUMN notified_look_up_at timestamptz;
