update contacts set kinds = array_remove(array_remove(kinds, 'report.question.asked'), 'report.question.reminded') where kinds is not null;
update push_preferences set kinds = array_remove(array_remove(kinds, 'report.question.asked'), 'report.question.reminded');
