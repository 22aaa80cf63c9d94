-- A message is one notification in a stream, or none: however often it is published, and
-- whether it reached its reader as an account or as the guest whom the account took over. A
-- message is about one report, so that the report in front makes no difference, and the
-- index also finds the notifications about a report.
--
-- The name ends in _pkey for the sake of replicas of 1.0.0, which do not expect this
-- index: they take a duplicate of any other name for a fault of the message and make it
-- a dead letter. This one stops their circuit breaker, and the message waits for a
-- replica that knows what to do.
--
-- Writers wait for the build of the index, and readers do not.
lock table streams, notifications in share row exclusive mode;

do $$
begin
  create unique index notifications_message_pkey on notifications (report_id, message_id, stream_id);
exception when unique_violation then
  -- There are doubles. The first of each stays, and the numbers of its stream close up:
  -- marks, digests and mails that count in them move, too. The stream gets another epoch,
  -- so that clients start over.
  create temporary table places on commit drop as
    select stream_id, seq, nth > 1 as double,
      seq - count(*) filter (where nth > 1) over (partition by stream_id order by seq) as place
    from (
      select stream_id, seq, row_number() over (partition by stream_id, report_id, message_id order by seq) as nth from notifications
      where stream_id in (select stream_id from notifications group by stream_id, report_id, message_id having count(*) > 1)) n;
  create index on places (stream_id, seq) where double;
  create temporary table reads on commit drop as
    select r.reader, r.stream_id, p.place, r.read from notification_reads r join places p using (stream_id, seq) where not p.double;

  delete from notification_reads r using places p where r.stream_id = p.stream_id and r.seq = p.seq;
  delete from notifications n using places p where n.stream_id = p.stream_id and n.seq = p.seq and p.double;
  update notifications n set seq = -p.place from places p where n.stream_id = p.stream_id and n.seq = p.seq;
  update notifications set seq = -seq where stream_id in (select stream_id from places) and seq < 0;
  insert into notification_reads (reader, stream_id, seq, read) select reader, stream_id, place, read from reads;

  update read_marks m set seq = m.seq - (select count(*) from places p where p.stream_id = m.stream_id and p.double and p.seq <= m.seq)
  where m.stream_id in (select stream_id from places);
  update digests d set sent_seq = d.sent_seq - (select count(*) from places p where p.stream_id = d.stream_id and p.double and p.seq <= d.sent_seq)
  where d.stream_id in (select stream_id from places);
  update deliveries d set body = convert_to(jsonb_build_object(
    'after', w.after - (select count(*) from places p where p.stream_id = w.stream_id and p.double and p.seq <= w.after),
    'to', w.upto - (select count(*) from places p where p.stream_id = w.stream_id and p.double and p.seq <= w.upto))::text, 'UTF8')
  from (
    select o.id, o.stream_id, (o.body->>'after')::bigint as after, (o.body->>'to')::bigint as upto from (
      select d.id, coalesce(c.stream_id, s.id) as stream_id, convert_from(d.body, 'UTF8')::jsonb as body
      from deliveries d left join contacts c on d.kind = 'digest' and d.target = c.id::text
      left join streams s on d.kind = 'overdue' and d.target = 'officials' and s.name = 'role:official'
      where d.channel = 'email' and d.kind in ('digest', 'overdue') and d.state = 'waiting') o) w
  where d.id = w.id and w.stream_id in (select stream_id from places);
  update streams s set epoch = default, last_seq = s.last_seq - p.doubles
  from (select stream_id, count(*) as doubles from places where double group by stream_id) p where s.id = p.stream_id;

  create unique index notifications_message_pkey on notifications (report_id, message_id, stream_id);
end $$;
