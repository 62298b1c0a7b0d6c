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

-- What a notification reports about a dispute beyond its stage and amount: a JSON object; null for nothing.
ALTER TABLE notification ADD COLUMN dispute_facts text;

-- Composes write_change_2, which does what write_change_1 does and, if that is written, adds corrections. It has the
-- parameters of write_change_1, and only changes with corrections call it, so that no other change pays for it.
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
  END IF;
END $$
$function$, '<given>', given), '<named>', named);
END $compose$;
