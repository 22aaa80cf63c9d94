-- Only versions before 1.0.0 kept photos under ids of clients, and renamed them: no program
-- looks for such photos now.
drop index photos_to_rename;
