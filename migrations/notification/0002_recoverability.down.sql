drop table operations_audit;
drop table dead_letter_attempts;
drop table dead_letters;
drop table replays;
drop table worker_pools;
drop table message_starts;
