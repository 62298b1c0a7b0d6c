-- The headers that a notification's signature is made of, so that it can be read again as it came.
ALTER TABLE notification ADD COLUMN headers text NOT NULL DEFAULT '{}';
