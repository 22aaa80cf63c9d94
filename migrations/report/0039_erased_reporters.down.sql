delete from reporters where reporter_id like 'erased:%';
