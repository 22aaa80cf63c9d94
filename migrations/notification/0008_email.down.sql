drop table mail_bounces;
drop table unsubscribe_tokens;
drop table digests;
drop table mail_consents;
drop table contact_codes;
drop table contacts;
delete from deliveries where channel = 'email';
alter table notifications drop column withheld;
