-- Readers in a city's own language get English.
update contacts set language = 'en' where language not in ('en', 'id');
update push_subscriptions set language = 'en' where language not in ('en', 'id');
alter table contacts
  drop constraint contacts_language_check,
  add constraint contacts_language_check check (language in ('en', 'id'));
alter table push_subscriptions
  drop constraint push_subscriptions_language_check,
  add constraint push_subscriptions_language_check check (language in ('en', 'id'));
