-- The types of payment method with which a checkout session may be paid; empty: all that the catalogue offers.
ALTER TABLE checkout_session ADD COLUMN payment_method_types text[] NOT NULL DEFAULT '{}';
