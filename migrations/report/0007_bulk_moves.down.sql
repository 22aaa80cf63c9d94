drop table bulk_moves;
