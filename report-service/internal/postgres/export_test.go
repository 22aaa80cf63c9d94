package postgres

// MaxCommits is how many batches are written at a time.
const MaxCommits = maxCommits

// Waiting returns how many changes wait for their turn.
func (s *Store) Waiting() int {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	return len(s.group.waiting)
}
