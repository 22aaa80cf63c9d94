drop table guest_switch;
drop table guest_codes;
drop table guests;
