// Package consumer turns deliveries into notifications, each exactly once.
//
// Every delivery ends in one of three outcomes: it is acknowledged, because
// its effect stands in the database; it waits in a retry tier of the broker;
// or it is a dead letter. Whatever moves is published and confirmed before
// the original is acknowledged, so that a crash at any point leaves at least
// one copy, and the record of handled messages leaves at most one effect.
//
// What waits in a queue is handled in batches, one transaction each. A batch
// that fails is taken apart, so that one bad message harms no other. While
// the database is away nothing is taken, and no attempt is spent. A message
// that was in hand when a process died runs alone, and one that killed three
// is put aside.
package consumer
