-- A city may have words in languages of its own (CITY_WORDS), which the service checks.
alter table contacts
  drop constraint contacts_language_check,
  add constraint contacts_language_check check (language ~ '^[a-z]{2,3}$') not valid;
alter table push_subscriptions
  drop constraint push_subscriptions_language_check,
  add constraint push_subscriptions_language_check check (language ~ '^[a-z]{2,3}$') not valid;
