-- Reports are found by their reference number, which is made of the last ten
-- digits of the id.
create index reports_reference on reports (right(id::text, 10));
