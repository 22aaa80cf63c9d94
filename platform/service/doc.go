// Package service is what both services need around their handlers: serving
// and draining, health, logging, tracing, metrics, and errors as problem
// details (RFC 9457).
//
// It promises that nothing personal leaks on the way: access logs and metrics
// carry the pattern of a route, never its path, query, body or principal, and
// an error that is ours alone reaches the client as "internal error".
package service
