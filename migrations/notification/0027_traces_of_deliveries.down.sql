alter table deliveries drop column trace_id;
