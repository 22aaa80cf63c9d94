drop index dead_letters_causes;
drop table dead_letter_notes;
