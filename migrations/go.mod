module github.com/cityconnect/cityconnect/migrations

go 1.26
