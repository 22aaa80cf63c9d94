// Package shards divides the outbox among the replicas of the relay: it leases
// each shard to one replica, and keeps this replica's fair share.
//
// It promises that a shard has one owner at a time, by the database's clock;
// that a replica regards its leases as expired well before the database does;
// that a shard is given to another only when none of its rows is in progress
// here; and that the shards of a replica that stops or dies find a new owner
// within two seconds, within seven if a restart of the database ends its
// session first, and those of one that hangs when its lease ends.
//
// A replica shows that it is alive by an advisory lock in its session with the
// database. The server frees it as soon as the process is gone. A session may
// also break while the process lives: so a replica without one publishes for
// half a second at most, and the others wait longer than that. If both were
// delayed beyond it, two replicas would publish the same rows in the same
// order, which consumers drop by their ids.
//
// A lease carries an epoch, which grows with each new owner and is never used
// twice. It is the fencing token that tells rows read under one lease from
// those read under a later one of the same shard.
package shards

import (
	"hash/fnv"

	"github.com/google/uuid"
)

// Count is how many shards the outbox has. The check in the schema says the
// same.
const Count = 16

// A Set is a set of shards, one bit each.
type Set uint16

// All holds every shard.
const All Set = 1<<Count - 1

// Add returns the set with shard in it.
func (s Set) Add(shard int16) Set { return s | 1<<uint(shard) }

// Of returns the shard that holds everything about a report: FNV-1a over the
// id's bytes. It must never change: rows of one report in two shards would
// lose their order.
func Of(report uuid.UUID) int16 {
	h := fnv.New32a()
	h.Write(report[:])
	return int16(h.Sum32() % Count)
}
