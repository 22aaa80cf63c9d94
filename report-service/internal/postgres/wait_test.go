package postgres_test

import "time"

// eventually polls until ok, because the database tells nobody.
func (f *fixture) eventually(what string, ok func() bool) {
	f.t.Helper()
	deadline, tick := time.After(patience), time.Tick(5*time.Millisecond)
	for !ok() {
		select {
		case <-tick:
		case <-deadline:
			f.t.Fatalf("in vain: %s", what)
		}
	}
}

// waitForLock waits until so many transactions wait for a lock.
func (f *fixture) waitForLock(n int) {
	f.t.Helper()
	f.eventually("a transaction waits for a lock", func() bool {
		var waiting int
		err := f.pool.QueryRow(f.t.Context(), `
			select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting == n
	})
}
