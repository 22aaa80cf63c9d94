package api_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
)

// A user files and votes so often, whatever others do. What breaks the document does
// not count, since it costs nothing; what is refused for what it asks does.
func TestLimitsOfAUser(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) {
		p.ReportsPerUser = ratelimit.Limit{Turns: 3, Period: time.Hour}
		p.VotesPerUser = ratelimit.Limit{Turns: 3, Period: time.Minute}
	})
	ann, bob := token(t, "ann", auth.Resident), token(t, "bob", auth.Resident)
	file := call{method: "POST", path: "/reports", token: ann, body: newReport}
	invalid := call{method: "POST", path: "/reports", token: ann, body: with("title", `"   "`)}
	report := s.file(ann, "public").ID.String()
	for range 2 {
		s.wantStatus(http.StatusBadRequest, invalid)
		s.wantStatus(http.StatusCreated, file)
	}
	s.wantLimited(file, 20*time.Minute)
	s.file(bob, "public")

	vote := call{method: "POST", path: "/reports/" + report + "/vote", token: bob, body: `{"vote_type":"upvote"}`}
	own := vote
	own.token = ann
	withdraw := call{method: "DELETE", path: vote.path, token: bob}
	for range 3 {
		s.wantStatus(http.StatusForbidden, own)
	}
	s.wantLimited(own, 20*time.Second)
	for _, c := range []call{vote, withdraw, vote} {
		s.wantStatus(http.StatusOK, c)
	}
	s.wantLimited(vote, 20*time.Second)
	s.wantLimited(withdraw, 20*time.Second)
	s.file(bob, "public") // which is counted apart
}

// Clients without an account report abuse so often from an address, whatever others do.
func TestLimitOfAnAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	abuse := func(address, token string) call {
		return call{method: "POST", path: "/reports/" + s.file(ann, "public").ID.String() + "/abuse", token: token, body: `{"reason":"spam"}`,
			headers: map[string]string{"X-Forwarded-For": address}}
	}
	one := abuse("2001:db8::5", "")
	for range 20 {
		s.wantStatus(http.StatusNoContent, one)
	}
	s.wantLimited(one, 3*time.Minute)
	s.wantLimited(abuse("2001:db8::6", ""), 3*time.Minute) // of the same network
	s.wantStatus(http.StatusNoContent, abuse("2001:db8:0:1::5", ""))
	s.wantStatus(http.StatusNoContent, abuse("2001:db8::5", token(t, "bob", auth.Resident)))
}

func (s *testServer) wantStatus(want int, c call) {
	s.t.Helper()
	if a := s.do(c); a.StatusCode != want {
		s.t.Errorf("%s %s: status %d, want %d: %s", c.method, c.path, a.StatusCode, want, a.body)
	}
}

// wantLimited sends c and wants a refusal that tells when to come back, at the
// latest after the time for one turn.
func (s *testServer) wantLimited(c call, most time.Duration) {
	s.t.Helper()
	s.wantProblem(refusal{call: c, status: http.StatusTooManyRequests, kind: "too-many-requests"})
	header := s.do(c).Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(header); err != nil || seconds < 1 || seconds > int(most.Seconds()) {
		s.t.Errorf("%s %s: Retry-After %q, want 1 to %v", c.method, c.path, header, most)
	}
}
