drop table delayed_messages;
