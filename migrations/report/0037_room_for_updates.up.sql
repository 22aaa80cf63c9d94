-- Room on each page for the next version of its rows. A vote changes no column that has
-- an index: if the new version of the report fits onto the page of the old one, no index
-- gets an entry, and the log has what differs instead of the whole row. Only pages that
-- are new from now on have the room.
alter table reports set (fillfactor = 85);

-- Each message is written twice, the second time as published. All rows of a page may be
-- in one batch of results, so that none makes room for another: the page is half full
-- before.
alter table outbox_messages set (fillfactor = 47);
