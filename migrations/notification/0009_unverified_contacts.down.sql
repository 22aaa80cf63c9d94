drop index contacts_unverified;
