package schedule

import "time"

// SetPace replaces the lease, and how often a replica looks for runs.
func (s *Scheduler) SetPace(lease, lookEvery time.Duration) { s.lease, s.lookEvery = lease, lookEvery }
