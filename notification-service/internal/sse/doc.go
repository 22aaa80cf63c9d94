// Package sse is the hub of the live streams: Server-Sent Events (WHATWG HTML
// §9.2) that resume on any replica without a gap and without a duplicate.
//
// The promise rests on numbers. The transaction that writes the notifications
// of a stream numbers them 1, 2, 3 … without a gap. For each stream that has
// clients, the hub keeps a topic, which passes a notification on only if its
// number is the next one. A lower number was passed on before, and a missing
// one is read from the database. So announcements may get lost, come twice or
// in any order, and the stream is complete and in order all the same. A client
// that comes back names the last number that it saw, and joins its topic
// exactly there.
//
// Delivering never waits for a client. A client that does not keep up is
// disconnected, and its cursor brings it back.
//
// The files, from the request down: handler (requests), resume (where a stream
// begins), hub (topics and clients), repair and compare (what topics miss),
// drain, timerwheel (heartbeats and ends), topic, client, frame. How bytes reach
// a client is package transport's.
package sse
