drop table push_preferences;
drop table push_subscriptions;
delete from deliveries where channel = 'push';
