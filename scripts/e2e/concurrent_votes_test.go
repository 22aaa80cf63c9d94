package e2e

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A thousand votes at once on five reports through two replicas, and then a
// thousand changes and withdrawals of them: the totals equal a recount, and
// the reporter was notified of every vote once.
func TestConcurrentVotes(t *testing.T) {
	t.Parallel()
	const reports, voters, rounds = 5, 1000, 2
	c := startStack(t)
	other := newProcess(t, "report-service", c.report.env)
	other.start()
	replicas := []*client.Client{client.New(c.report.url()), client.New(other.url())}
	ana := c.signIn("Ana", "resident")
	anas := watch(t, ana)
	var filed []client.Report
	for range reports {
		filed = append(filed, file(t, ana, "Contested"))
	}

	votes := make([]int64, voters) // what each voter left standing
	for range rounds {
		start := make(chan struct{})
		var wg sync.WaitGroup
		for v := range voters {
			id, report := "voter-"+strconv.Itoa(v), filed[v%reports]
			voter := replicas[v%2].As(id, token(jwt.MapClaims{"sub": id}))
			wg.Go(func() {
				<-start
				votes[v] = voteOrWithdraw(t, voter, report)
			})
		}
		close(start)
		wg.Wait()
	}

	want := make([]int64, reports)
	for v, value := range votes {
		want[v%reports] += value
	}
	for i, report := range filed {
		c.checkScore(report, want[i])
	}
	anas.check(c.announced(voted))
}

// voteOrWithdraw does one of the things that a voter can do and returns the
// vote that then counts. Where the machine is busy, some of a thousand wait for
// longer than a request may, or than their connection is kept, and ask again: a
// vote counts once however often it is sent.
func voteOrWithdraw(t *testing.T, voter *client.Client, report client.Report) int64 {
	value := rand.Int64N(3) - 1
	method, body := http.MethodDelete, any(nil)
	if value != 0 {
		method, body = http.MethodPost, map[string]string{"vote_type": map[int64]string{1: "upvote", -1: "downvote"}[value]}
	}
	for began := time.Now(); ; {
		err := voter.Insist(t.Context(), method, "/reports/"+report.ID.String()+"/vote", body, nil)
		answered := err == nil || client.StatusOf(err) != 0
		if answered || time.Since(began) > eventually.Patience {
			if err != nil {
				t.Errorf("vote: %v", err)
			}
			return value
		}
	}
}

// checkScore compares the report's score, in the answer and in the row, with
// a recount of its votes.
func (c *stack) checkScore(report client.Report, want int64) {
	c.t.Helper()
	seen, err := c.Report(c.t.Context(), report.ID)
	if err != nil {
		c.t.Fatalf("read report: %v", err)
	}
	var row, recount int64
	err = c.reportDB.QueryRow(c.t.Context(), `
		select score, (select coalesce(sum(value), 0) from votes where report_id = id)
		from reports where id = $1`, report.ID).Scan(&row, &recount)
	if err != nil {
		c.t.Fatalf("recount: %v", err)
	}
	if seen.Score != want || row != want || recount != want {
		c.t.Errorf("score: answered %d, stored %d, recounted %d, want %d", seen.Score, row, recount, want)
	}
}
