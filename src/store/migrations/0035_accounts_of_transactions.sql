-- The releases before 0017 inserted transactions without their account, and those after it gave them one in the background.
-- What is left gets it here: nothing, unless all of those were passed over. Then a million rows take about a minute.
UPDATE transaction t SET account_id = p.account_id FROM payment p
  WHERE t.account_id = '00000000-0000-0000-0000-000000000000' AND p.id = t.payment_id;
