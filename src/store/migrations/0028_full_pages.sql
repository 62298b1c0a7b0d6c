-- A payment's end changes what indexes hold, so its new version never takes the place that pages kept free for it. Pages
-- that are written from now on are filled; a payment takes a seventh less of the disk.
ALTER TABLE payment RESET (fillfactor);
