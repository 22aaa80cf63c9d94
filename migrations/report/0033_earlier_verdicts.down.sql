alter table verdicts drop column earlier;
