module github.com/cityconnect/cityconnect/report-service

go 1.26
