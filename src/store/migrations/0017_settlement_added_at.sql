-- When a line was stored, and when it was matched. It takes the place of a time that the report does not give.
ALTER TABLE settlement_line ADD COLUMN added_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE settlement_match ADD COLUMN added_at timestamptz NOT NULL DEFAULT now();
