module github.com/cityconnect/cityconnect/scripts/cmd/loadtest

go 1.26.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/cityconnect/cityconnect/platform v0.0.0
	github.com/cityconnect/cityconnect/scripts v0.0.0
	github.com/google/uuid v1.6.0
	github.com/prometheus/common v0.72.0
	golang.org/x/sync v0.24.0
)

require (
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/cityconnect/cityconnect/scripts => ../..

replace github.com/cityconnect/cityconnect/platform => ../../../platform
