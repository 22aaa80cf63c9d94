package api_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// statuses returns every status that a report can have, and how to get there.
func statuses() map[report.Status][]report.Status {
	ways := map[report.Status][]report.Status{report.Pending: nil}
	for queue := []report.Status{report.Pending}; len(queue) > 0; queue = queue[1:] {
		for _, t := range queue[0].Transitions() {
			if _, seen := ways[t.To]; !seen {
				ways[t.To] = append(slices.Clone(ways[queue[0]]), t.To)
				queue = append(queue, t.To)
			}
		}
	}
	return ways
}

// A report's transitions are the changes of status that it takes, and no other,
// and they say which of them is refused without a note.
func TestTransitionsAreThoseThatAreTaken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	change := func(id uuid.UUID, to report.Status, note string) answer {
		return s.do(call{method: "PATCH", path: "/reports/" + id.String() + "/status", token: olga,
			body: `{"status":"` + string(to) + `","note":"` + note + `"}`})
	}
	for from, way := range statuses() {
		for to := range statuses() {
			rep := s.file(ann, "public")
			for _, next := range way {
				if a := change(rep.ID, next, "because"); a.StatusCode != http.StatusOK {
					t.Fatalf("on the way to %s: %d %s", from, a.StatusCode, a.body)
				}
			}
			rep, _ = ok[reportapi.Report](s, call{method: "GET", path: "/reports/" + rep.ID.String()}, http.StatusOK)
			if rep.Closed != from.Closed() || rep.Transitions == nil {
				t.Errorf("%s: closed %t with transitions %v", from, rep.Closed, rep.Transitions)
			}
			i := slices.IndexFunc(rep.Transitions, func(tr reportapi.Transition) bool { return tr.Status == reportapi.Status(to) })
			bare := change(rep.ID, to, "").StatusCode
			explained := change(rep.ID, to, "because").StatusCode
			switch {
			case from == to:
				if i >= 0 || bare != http.StatusOK {
					t.Errorf("%s again: listed at %d and answered %d, want it not listed and 200", to, i, bare)
				}
			case i < 0:
				if bare != http.StatusConflict || explained != http.StatusConflict {
					t.Errorf("%s to %s is not listed, and answered %d and with a note %d; want 409", from, to, bare, explained)
				}
			case rep.Transitions[i].NoteRequired:
				if bare != http.StatusBadRequest || explained != http.StatusOK {
					t.Errorf("%s to %s is listed with a note, and answered %d and with one %d; want 400 and 200", from, to, bare, explained)
				}
			case bare != http.StatusOK:
				t.Errorf("%s to %s is listed, and answered %d, want 200", from, to, bare)
			}
		}
	}
}
