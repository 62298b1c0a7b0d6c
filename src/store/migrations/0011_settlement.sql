-- Settlement: the lines of providers' reports, and the transactions that they settle.

-- Imported files. Their lines count only once completed_at is set; what an import leaves unfinished is deleted by age.
CREATE TABLE settlement_file (
  -- The nil UUID: a report belongs to a connection.
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  connection_id text NOT NULL CHECK (length(connection_id) BETWEEN 1 AND 255),
  -- The account at the provider whose report it is (connection_account).
  connection_identity text NOT NULL,
  name text NOT NULL CHECK (length(name) <= 255),
  sha256 bytea NOT NULL CHECK (length(sha256) = 32),
  bytes bigint NOT NULL,
  -- Its lines that no earlier file had, and those that one had.
  new_lines integer NOT NULL DEFAULT 0,
  repeated_lines integer NOT NULL DEFAULT 0,
  actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 600),
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When its import last wrote; an import that stopped is taken away some minutes later.
  seen_at timestamptz NOT NULL DEFAULT now(),
  completed_at timestamptz,
  PRIMARY KEY (account_id, id)
);
CREATE UNIQUE INDEX settlement_file_content ON settlement_file (account_id, connection_identity, sha256)
  WHERE completed_at IS NOT NULL;
-- One import at a time for each account at a provider.
CREATE UNIQUE INDEX settlement_file_open ON settlement_file (account_id, connection_identity) WHERE completed_at IS NULL;

-- Lines of reports, one for each movement at a provider. A row has no personal data, and is never deleted once its file
-- is complete. Amounts are minor units, positive to the merchant.
CREATE TABLE settlement_line (
  -- The nil UUID: which transaction it settles, if any, is in settlement_match.
  account_id uuid NOT NULL,
  connection_identity text NOT NULL,
  -- Identifies the movement in every report that repeats it.
  line_key text COLLATE "C" NOT NULL CHECK (length(line_key) BETWEEN 1 AND 300),
  connection_id text NOT NULL,
  file_id uuid NOT NULL,
  line_number integer NOT NULL,
  -- Tells reports of one provider apart that show the same money twice.
  report text NOT NULL,
  -- connectors/port/settlement-line, and the provider's word.
  kind text NOT NULL,
  raw_kind text NOT NULL,
  our_id uuid,
  provider_reference text,
  parent_reference text,
  dispute_reference text,
  payout_reference text,
  -- As the payer saw it; null if the report does not say.
  amount_minor_units bigint,
  currency text,
  gross bigint NOT NULL,
  fee bigint NOT NULL,
  tax bigint NOT NULL,
  net bigint NOT NULL,
  settlement_currency text NOT NULL,
  exchange_rate text,
  occurred_at timestamptz,
  -- matched, unmatched, ambiguous, or none_expected; null until its transaction was searched.
  result text,
  PRIMARY KEY (account_id, connection_identity, line_key)
);
CREATE INDEX settlement_line_of_file ON settlement_line (account_id, file_id, line_number);
CREATE INDEX settlement_line_open ON settlement_line (account_id, file_id, line_number) WHERE result IS NULL;
CREATE INDEX settlement_line_of_payout ON settlement_line (account_id, connection_identity, payout_reference)
  WHERE payout_reference IS NOT NULL;

-- The transactions that lines settle, with what is shown of the line beside the transaction.
CREATE TABLE settlement_match (
  account_id uuid NOT NULL,
  transaction_id uuid NOT NULL,
  connection_identity text NOT NULL,
  line_key text COLLATE "C" NOT NULL,
  payment_id uuid NOT NULL,
  report text NOT NULL,
  kind text NOT NULL,
  payout_reference text,
  amount_minor_units bigint,
  currency text,
  gross bigint NOT NULL,
  fee bigint NOT NULL,
  tax bigint NOT NULL,
  net bigint NOT NULL,
  settlement_currency text NOT NULL,
  occurred_at timestamptz,
  PRIMARY KEY (account_id, transaction_id, connection_identity, line_key)
);
CREATE INDEX settlement_match_of_payment ON settlement_match (account_id, payment_id);
