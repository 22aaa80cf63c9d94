package report_test

import (
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func TestVote(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		voter         string
		status        report.Status
		before, after report.Vote
		wantKind      fault.Kind
		wantScore     int64
		wantVersion   int64 // 8 when it is announced
		wantOK        bool
	}{
		{"up", "bob", report.Pending, report.None, report.Upvote, "", 1, 8, true},
		{"down", "bob", report.InProgress, report.None, report.Downvote, "", -1, 8, true},
		{"changed", "bob", report.Pending, report.Upvote, report.Downvote, "", -2, 8, true},
		{"same again", "bob", report.Pending, report.Upvote, report.Upvote, "", 0, 7, false},
		{"withdrawn", "bob", report.Pending, report.Downvote, report.None, "", 1, 7, true},
		{"nothing to withdraw", "bob", report.Pending, report.None, report.None, "", 0, 7, false},
		{"own report", "ann", report.Pending, report.None, report.Upvote, report.OwnReport, 0, 7, false},
		{"resolved", "bob", report.Resolved, report.None, report.Upvote, report.Closed, 0, 7, false},
		{"rejected", "bob", report.Rejected, report.Upvote, report.Downvote, report.Closed, 0, 7, false},
		{"withdrawn from a closed one", "bob", report.Resolved, report.Upvote, report.None, report.Closed, 0, 7, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := filed(tt.status)
			ok, err := f.Vote(report.Ballot{Voter: tt.voter, Vote: tt.after}, tt.before, now.Add(time.Minute))
			if got := fault.KindOf(err); got != tt.wantKind || (err != nil) != (tt.wantKind != "") {
				t.Errorf("Vote: kind %q, want %q (error: %v)", got, tt.wantKind, err)
			}
			if ok != tt.wantOK || f.Score != tt.wantScore || f.Version != tt.wantVersion {
				t.Errorf("Vote: ok %t, score %d, version %d; want %t, %d, %d",
					ok, f.Score, f.Version, tt.wantOK, tt.wantScore, tt.wantVersion)
			}
			if changed := f.UpdatedAt.After(f.CreatedAt); changed != tt.wantOK {
				t.Errorf("updated_at moved: %t, want %t", changed, tt.wantOK)
			}
		})
	}
}

func TestVoteIfMatch(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]fault.Kind{`*`: "", `"7"`: "", `"6"`: report.Stale, `W/"7"`: report.Stale} {
		versions, err := report.ParseIfMatch(header)
		if err != nil {
			t.Fatalf("ParseIfMatch(%s): %v", header, err)
		}
		for _, vote := range []report.Vote{report.Upvote, report.None} {
			f := filed(report.Pending)
			_, err := f.Vote(report.Ballot{Voter: "bob", Vote: vote, IfMatch: versions}, report.Downvote, now)
			if got := fault.KindOf(err); got != want {
				t.Errorf("vote %d with If-Match %s: kind %q, want %q", vote, header, got, want)
			}
		}
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	for privacy, want := range map[report.Privacy]string{report.Public: "Ann", report.Anonymous: ""} {
		f := filed(report.Pending)
		f.Privacy = privacy
		if v := f.View(); v.ReporterName != want || !v.Mine {
			t.Errorf("%s: reporter name %q and mine %t, want %q and true", privacy, v.ReporterName, v.Mine, want)
		}
	}
}
