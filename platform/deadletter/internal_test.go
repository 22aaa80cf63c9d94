package deadletter

import (
	"testing"
	"time"
)

func TestNextStep(t *testing.T) {
	t.Parallel()
	now := time.Now()
	long := now.Add(-settleTimeout - time.Second)
	for _, tt := range []struct {
		name   string
		replay Replay
		want   step
	}{
		{"without canary", Replay{Total: 10, Progress: Progress{Pending: 10}}, step{send: maxPage}},
		{"slowly", Replay{Total: 10, PerSecond: 4, Progress: Progress{Pending: 10}}, step{send: 2}},
		{"canary first", Replay{Total: 10, Canary: 3, Progress: Progress{Pending: 10}}, step{send: 3}},
		{"the rest of the canary", Replay{Total: 10, Canary: 3, Progress: Progress{Pending: 9, InFlight: 1}}, step{send: 2}},
		{"canary in flight", Replay{Total: 10, Canary: 3, Progress: Progress{Pending: 7, InFlight: 3}}, step{}},
		{"canary lost", Replay{Total: 10, Canary: 3, Progress: Progress{Pending: 7, InFlight: 3, LastSent: &long}}, step{state: Stopped, reason: "the canary has neither succeeded nor come back"}},
		{"canary failed", Replay{Total: 10, Canary: 3, Progress: Progress{Pending: 7, InFlight: 2, Failed: 1}}, step{state: Stopped, reason: "the canary failed: the cause is still there"}},
		{"canary passed", Replay{Total: 10, Canary: 3, Progress: Progress{Pending: 7, Resolved: 3}}, step{send: maxPage}},
		{"failure after the canary", Replay{Total: 10, Canary: 3, Progress: Progress{Pending: 6, Resolved: 3, Failed: 1}}, step{send: maxPage}},
		{"canary larger than all", Replay{Total: 2, Canary: 3, Progress: Progress{Resolved: 2}}, step{state: Done}},
		{"waiting for news", Replay{Total: 2, Progress: Progress{InFlight: 1, Resolved: 1, LastSent: &now}}, step{}},
		{"no news", Replay{Total: 2, Progress: Progress{InFlight: 1, Resolved: 1, LastSent: &long}}, step{state: Done}},
		{"done", Replay{Total: 2, Progress: Progress{Failed: 1, Resolved: 1}}, step{state: Done}},
	} {
		if got := tt.replay.next(now); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestNormalise(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"body is not valid JSON at byte 34":                       "body is not valid JSON at byte N",
		"SQLSTATE 23514, table notifications, constraint c_2":     "SQLSTATE 23514, table notifications, constraint c_N",
		"no report 018f2f6e-7a3b-7c11-9d2a-0123456789ab in row 7": "no report * in row N",
	} {
		if got := normalise(in); got != want {
			t.Errorf("%q is grouped as %q, want %q", in, got, want)
		}
	}
}
