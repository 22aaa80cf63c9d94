drop table webhook_recoveries;
