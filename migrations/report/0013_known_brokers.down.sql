drop table known_brokers;
