// Package e2e proves the promises of the whole: both services as real
// processes, a real PostgreSQL and a real RabbitMQ, driven through the public
// API and broken on the way.
//
// Each test has databases and a virtual host of its own, or a broker of its
// own where it stops one. Run it with `make test`.
//
// A file is named after the promise that it proves. What tests share is in
// stack_test.go (both services and what is around them), process_test.go (one
// service), users_test.go (what residents and officials do), screen_test.go (an
// open stream), broker_test.go, page_test.go (a browser) and openapi_test.go.
package e2e
