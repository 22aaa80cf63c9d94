-- Readers who get new statuses at once get questions of the city, and reminders of them,
-- at once: without an answer the work on their report stands still.
update contacts set kinds = kinds || '{report.question.asked,report.question.reminded}'
where 'report.status.updated' = any(kinds) and not 'report.question.asked' = any(kinds);
update push_preferences set kinds = kinds || '{report.question.asked,report.question.reminded}'
where 'report.status.updated' = any(kinds) and not 'report.question.asked' = any(kinds);
