-- Movements of money that has moved before: a capture or refund that failed after it had succeeded, or that was made
-- again, and disputed money that the provider takes and gives back. Rows are only added, by the write that reports the
-- movement, so that a month that is over never changes. A transaction's first movement is not here: it is the transaction
-- itself, at its succeeded_at. Its amount then was the opposite of its correction 1, if that is UNDONE, since the
-- transaction takes another amount if the operation is made again with another.
CREATE TABLE movement_correction (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The purchase, capture or refund; for a dispute, the CHARGEBACK.
  transaction_id uuid NOT NULL,
  -- Numbers the transaction's corrections from 1, so that none is written twice.
  number integer NOT NULL CHECK (number > 0),
  -- UNDONE and REDONE alternate, and so do DISPUTE_WITHDRAWN and DISPUTE_REINSTATED.
  kind text NOT NULL CHECK (kind IN ('UNDONE', 'REDONE', 'DISPUTE_WITHDRAWN', 'DISPUTE_REINSTATED')),
  -- Positive to the merchant, negative from the merchant.
  amount_minor_units bigint NOT NULL,
  -- ISO 4217.
  currency text NOT NULL,
  -- When it was written. The provider's own time could lie in a month that is over.
  occurred_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id),
  UNIQUE (account_id, transaction_id, number)
);
CREATE INDEX movement_correction_by_time ON movement_correction (account_id, occurred_at, id);

-- Disputes. One that takes money has a CHARGEBACK transaction with its id; an inquiry has none. A row is never deleted.
CREATE TABLE dispute (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  payment_id uuid NOT NULL,
  -- As in the disputed transaction.
  connection_id text NOT NULL,
  connection_identity text NOT NULL,
  -- The provider's id of the dispute; null if it gives none.
  provider_reference text CHECK (length(provider_reference) <= 255),
  -- payments.v1.Dispute.Stage, Status and Reason.
  stage text NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  -- The reason in the provider's words, and the card scheme's code; null if the provider says none.
  raw_reason text CHECK (length(raw_reason) <= 100),
  network_code text CHECK (length(network_code) <= 100),
  amount_minor_units bigint NOT NULL CHECK (amount_minor_units >= 0),
  -- ISO 4217.
  currency text NOT NULL,
  -- The provider's fee so far, in its own currency; null if it says none.
  fee_minor_units bigint,
  fee_currency text,
  -- Until when the merchant can respond; null if unknown.
  respond_by timestamptz,
  -- URL of the case at the provider; null if unknown.
  link text CHECK (length(link) <= 1000),
  -- An operator's note, and who wrote it last.
  note text NOT NULL DEFAULT '' CHECK (length(note) <= 2000),
  noted_by text CHECK (length(noted_by) <= 600),
  -- When the provider last changed it, as far as it says.
  reported_at timestamptz,
  -- Numbers its changes.
  sequence integer NOT NULL,
  opened_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  -- When it ended; null while it is open.
  closed_at timestamptz,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX dispute_by_time ON dispute (account_id, opened_at, id);
CREATE INDEX dispute_of_payment ON dispute (account_id, payment_id, opened_at);
-- The disputes of all accounts that operators see.
CREATE INDEX dispute_open ON dispute (respond_by NULLS FIRST) WHERE closed_at IS NULL;

-- What a notification reports about a dispute beyond its stage and amount: a JSON object; null for nothing.
ALTER TABLE notification ADD COLUMN dispute_facts text;

-- Composes write_change_2, which does what write_change_1 does and, if that is written, writes a dispute with its
-- event and adds corrections. It has the parameters of write_change_1, and only changes with disputes or corrections call it,
-- so that no other change pays for it.
DO $compose$
DECLARE
  given text;
  named text;
BEGIN
  SELECT string_agg(format('%I %s', name, type::regtype), ', ' ORDER BY n), string_agg(format('%1$I => %1$I', name), ', ' ORDER BY n)
  INTO STRICT given, named
  FROM pg_proc, unnest(proargnames, proallargtypes, proargmodes) WITH ORDINALITY AS a (name, type, mode, n)
  WHERE oid = 'write_change_1'::regproc AND mode = 'i';
  EXECUTE replace(replace($function$
CREATE FUNCTION write_change_2(
  <given>,
  correction_ids uuid[],
  correction_transactions uuid[],
  correction_numbers integer[],
  correction_kinds text[],
  correction_amounts bigint[],
  correction_currencies text[],
  -- The dispute; null if none changes.
  the_dispute uuid,
  dispute_connection text,
  dispute_identity text,
  dispute_reference text,
  dispute_stage text,
  dispute_status text,
  dispute_reason text,
  dispute_raw_reason text,
  dispute_network_code text,
  dispute_minor_units bigint,
  dispute_currency text,
  dispute_fee bigint,
  dispute_fee_currency text,
  dispute_respond_by timestamptz,
  dispute_link text,
  dispute_reported_at timestamptz,
  dispute_sequence integer,
  disputed_at timestamptz,
  dispute_is_open boolean,
  -- Its event: the id, the type, and an encoded payments.v1.DisputeEventData.
  dispute_event uuid,
  dispute_event_type text,
  dispute_event_record bytea,
  OUT result text,
  OUT fence integer,
  OUT has_event boolean,
  OUT earlier_response bytea,
  OUT earlier_record bytea
) LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  SELECT w.result, w.fence, w.has_event, w.earlier_response, w.earlier_record
  INTO result, fence, has_event, earlier_response, earlier_record
  FROM write_change_1(<named>) w;
  IF result = 'written' THEN
    -- A call that is repeated after a lost acknowledgement adds nothing.
    FOR i IN 1 .. cardinality(correction_ids) LOOP
      INSERT INTO movement_correction (account_id, id, transaction_id, number, kind, amount_minor_units, currency)
      VALUES (the_account, correction_ids[i], correction_transactions[i], correction_numbers[i], correction_kinds[i],
        correction_amounts[i], correction_currencies[i])
      ON CONFLICT DO NOTHING;
    END LOOP;
    IF the_dispute IS NOT NULL THEN
      INSERT INTO dispute AS d (account_id, id, payment_id, connection_id, connection_identity, provider_reference, stage,
        status, reason, raw_reason, network_code, amount_minor_units, currency, fee_minor_units, fee_currency, respond_by,
        link, reported_at, sequence, opened_at, updated_at, closed_at)
      VALUES (the_account, the_dispute, the_payment, dispute_connection, dispute_identity, dispute_reference,
        dispute_stage, dispute_status, dispute_reason, dispute_raw_reason, dispute_network_code, dispute_minor_units,
        dispute_currency, dispute_fee, dispute_fee_currency, dispute_respond_by, dispute_link, dispute_reported_at,
        dispute_sequence, disputed_at, disputed_at, CASE WHEN NOT dispute_is_open THEN disputed_at END)
      ON CONFLICT (account_id, id) DO UPDATE
      SET provider_reference = excluded.provider_reference, stage = excluded.stage, status = excluded.status,
        reason = excluded.reason, raw_reason = excluded.raw_reason, network_code = excluded.network_code,
        amount_minor_units = excluded.amount_minor_units, currency = excluded.currency,
        fee_minor_units = excluded.fee_minor_units, fee_currency = excluded.fee_currency,
        respond_by = excluded.respond_by, link = excluded.link, reported_at = excluded.reported_at,
        sequence = excluded.sequence, updated_at = excluded.updated_at,
        closed_at = CASE WHEN excluded.closed_at IS NOT NULL THEN
          CASE WHEN d.status = excluded.status THEN coalesce(d.closed_at, excluded.closed_at) ELSE excluded.closed_at END
        END;
      IF EXISTS (
        SELECT 1 FROM webhook w WHERE w.account_id = the_account AND w.active AND dispute_event_type = ANY (w.events)
      ) THEN
        INSERT INTO event (account_id, id, type, payment_id, sequence, record)
        VALUES (the_account, dispute_event, dispute_event_type, the_payment, dispute_sequence, dispute_event_record)
        ON CONFLICT DO NOTHING;
        has_event := true;
      END IF;
    END IF;
  END IF;
END $$
$function$, '<given>', given), '<named>', named);
END $compose$;
