-- How many payments a session has had, those that came to nothing included: it takes no more than a few, since cards that
-- were stolen are tried out where a card may be tried without end.
ALTER TABLE checkout_session ADD COLUMN payments integer NOT NULL DEFAULT 0;
