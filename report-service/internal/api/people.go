package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// seenEvery is how exactly the service knows when a member used it.
const seenEvery = time.Hour

// People are officials, operators and auditors as they use the service. Residents are
// never recorded.
type People struct {
	store   *postgres.Workbench
	log     zerolog.Logger
	pending chan report.Member // those who do not fit are recorded at a later request

	mu   sync.Mutex
	seen map[string]report.Member // by id, as last recorded, or about to be
}

// NewPeople returns People in store.
func NewPeople(store *postgres.Workbench, log zerolog.Logger) *People {
	return &People{store: store, log: log, pending: make(chan report.Member, 64), seen: make(map[string]report.Member)}
}

// Operations are those on people.
func (p *People) Operations() openapi.Operations {
	return openapi.Operations{"listPeople": {Handler: answered(p.list), Timeout: service.DefaultTimeout}}
}

// Notice passes requests on, and leaves to Run who of the city's staff made them: a
// request waits for no database.
func (p *People) Notice(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, ok := auth.From(r.Context()); ok && user.Role != auth.Resident && !user.Machine() {
			p.note(report.Member{ID: user.ID, Name: user.Name, Role: string(user.Role), SeenAt: time.Now().UTC().Truncate(seenEvery)})
		}
		next.ServeHTTP(w, r)
	})
}

// note leaves m to Run if m is new and there is room.
func (p *People) note(m report.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[m.ID] == m {
		return
	}
	select {
	case p.pending <- m:
		p.seen[m.ID] = m
	default:
	}
}

// Run records those whom Notice has seen until ctx ends.
func (p *People) Run(ctx context.Context) error {
	for {
		select {
		case m := <-p.pending:
			if err := p.store.See(ctx, m); err != nil {
				p.mu.Lock()
				delete(p.seen, m.ID)
				p.mu.Unlock()
				p.log.Warn().Err(err).Msg("recording a member failed, the next request will retry")
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// list handles GET /admin/reports/people.
func (p *People) list(r *http.Request) (reportapi.People, error) {
	people, err := p.store.People(r.Context(), intParam(r, "limit"))
	return reportapi.People{People: service.Each(people, func(m report.Member) reportapi.Member {
		return reportapi.Member{ID: m.ID, Name: m.Name, Role: reportapi.MemberRole(m.Role), SeenAt: m.SeenAt}
	})}, err
}
