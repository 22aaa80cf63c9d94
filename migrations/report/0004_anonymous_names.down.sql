-- What is forgotten stays so.
select;
