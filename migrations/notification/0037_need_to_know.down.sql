drop index streams_of_departments;
