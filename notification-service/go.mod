module github.com/cityconnect/cityconnect/notification-service

go 1.26

require (
	github.com/cityconnect/cityconnect/platform v0.0.0
	github.com/google/uuid v1.6.0
)

replace github.com/cityconnect/cityconnect/platform => ../platform
