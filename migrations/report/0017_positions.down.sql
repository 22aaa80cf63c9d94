select 1; -- what was rounded stays so
