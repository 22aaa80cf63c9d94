drop table queue_views;
