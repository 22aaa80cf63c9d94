drop index reports_by_asset;
alter table reports drop column asset_id;
drop table assets;
drop table asset_layers;
