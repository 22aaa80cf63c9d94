// Package e2e proves the promises of the whole: both services as real
// processes, a real PostgreSQL and a real RabbitMQ, driven through the public
// API and broken on the way.
//
// Each test has databases and a virtual host of its own, or a broker of its
// own where it stops one. Run it with `make test`.
package e2e
