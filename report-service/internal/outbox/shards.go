package outbox

import (
	"hash/fnv"

	"github.com/google/uuid"
)

// ShardCount is how many parts the outbox has, which the replicas of the relay
// share among them. The check in the schema says the same.
const ShardCount = 16

// Shards is a set of parts of the outbox, a bit each.
type Shards uint16

// AllShards is the whole outbox.
const AllShards Shards = 1<<ShardCount - 1

// Add returns the set with shard in it.
func (s Shards) Add(shard int16) Shards { return s | 1<<uint(shard) }

// ShardOf returns the part that holds everything about a report: FNV-1a over
// the id's bytes. It must never change: rows of one report in two shards would
// lose their order.
func ShardOf(report uuid.UUID) int16 {
	h := fnv.New32a()
	h.Write(report[:])
	return int16(h.Sum32() % ShardCount)
}
