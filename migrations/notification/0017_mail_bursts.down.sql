drop index mail_bounces_hard;
alter table mail_bounces drop column ours;
