-- The number of parts from which the report adds up the fee of a line: each of them is rounded. Lines of earlier releases
-- count as one.
ALTER TABLE settlement_line ADD COLUMN fee_parts smallint NOT NULL DEFAULT 1;
ALTER TABLE settlement_match ADD COLUMN fee_parts smallint NOT NULL DEFAULT 1;
