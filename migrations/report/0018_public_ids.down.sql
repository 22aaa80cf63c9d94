drop index photos_to_rename;
