package service

// LimitBody is what NewRouter limits bodies with.
var LimitBody = limitBody
