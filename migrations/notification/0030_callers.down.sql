drop table caller_mails, callers;
