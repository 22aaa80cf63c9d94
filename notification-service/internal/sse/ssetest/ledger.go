package ssetest

import (
	"fmt"
	"strconv"
	"strings"
)

// A Ledger holds what a client of one stream has received against what it
// should have. The zero value begins with the first event.
type Ledger struct {
	epoch    string
	last     int64
	Received int
	Missing  int64
	Doubled  int
	Resets   int
}

// Note takes an event down.
func (l *Ledger) Note(e Event) error {
	if e.Type != "ready" && e.Type != "notification" && e.Type != "reset" {
		return nil
	}
	parts := strings.Split(e.ID, ".")
	if len(parts) != 3 || parts[0] != "v1" {
		return fmt.Errorf("event %q has the id %q", e.Type, e.ID)
	}
	seq, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return fmt.Errorf("event %q has the id %q", e.Type, e.ID)
	}
	known := l.epoch != ""
	switch {
	case e.Type == "reset":
		l.Resets++
	case e.Type == "ready":
		if known && seq != l.last {
			return fmt.Errorf("ready at %d after %d", seq, l.last)
		}
	case known && seq <= l.last:
		l.Received++
		l.Doubled++
		return nil
	default:
		l.Received++
		l.Missing += seq - l.last - 1
	}
	l.epoch, l.last = parts[1], seq
	return nil
}

// Last returns the number received last.
func (l *Ledger) Last() int64 { return l.last }
