-- Positions have five digits, a metre, as the page sends them. Further ones came
-- from other clients, and tell which receiver measured them. A position that a
-- replica of the version before still takes keeps what it came with.
update reports set
  latitude = round(latitude::numeric, 5)::double precision,
  longitude = round(longitude::numeric, 5)::double precision
where latitude <> round(latitude::numeric, 5)::double precision
  or longitude <> round(longitude::numeric, 5)::double precision;
