package pgpool

import "context"

// BarrierSQL makes the commit of its transaction wait until a standby has all
// that was committed before, where the server replicates synchronously; else it
// does nothing.
//
// A commit that waits for its standby is invisible. But when its client gives
// up and cancels it, PostgreSQL ends the wait, and the rows become visible
// although no standby has them: a failover loses them. A client that asks again finds
// them and writes nothing, and a transaction that has written nothing waits for
// nobody. So the answer "that was done before" requires a write: the
// message that this emits, which nobody reads. An id alone
// (pg_current_xact_id) would not do: without WAL of its own, a commit does not
// wait. A transaction that has locked a row has written WAL, and needs no
// barrier.
const BarrierSQL = `
	select pg_logical_emit_message(true, 'cityconnect', '')
	where current_setting('synchronous_standby_names') <> ''`

// Barrier waits until all that was visible when it was called is on a standby,
// where the server replicates synchronously. It costs a round trip elsewhere.
func Barrier(ctx context.Context, db Executer) error {
	return Exec(ctx, db, "wait for replication", BarrierSQL)
}
