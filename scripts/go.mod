module github.com/cityconnect/cityconnect/scripts

go 1.26
