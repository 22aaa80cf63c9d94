// Package sse is the hub of the live streams: Server-Sent Events (WHATWG HTML
// §9.2) that resume on any replica without a gap and without a double.
//
// The promise rests on numbers. The notifications of a stream are numbered
// 1, 2, 3 … in the transaction that writes them. The hub follows each stream
// that somebody listens to as a topic, which passes a notification on only if
// its number is the next one; one that is lower was passed on before, and a
// hole is filled from the database. So what reaches the hub may be lost,
// doubled and shuffled on the way, and what leaves it is not. A client that
// comes back names the last number it saw and is joined to the topic exactly
// there.
//
// Nothing that delivers ever waits for a client. Whoever does not keep up is
// cut off, and its cursor brings it back.
package sse
