drop index reports_alike;
drop table category_signposts;
