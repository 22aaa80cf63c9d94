module github.com/cityconnect/cityconnect/docs

go 1.26.0
