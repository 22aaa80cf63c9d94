drop index reports_reference;
