package postgres_test

import (
	"context"
	"encoding/json"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

var (
	ann = report.Reporter{ID: "ann-id", Name: "Ann"}
	bob = report.Reporter{ID: "bob-id", Name: "Bob"}
)

// A fixture is the reports database on one of the test's own.
type fixture struct {
	*postgres.Reports
	comments   *postgres.Comments
	photos     *postgres.Photos
	checks     *postgres.PhotoChecks
	categories *settings.Categories
	areas      *settings.Areas
	moderation *postgres.Moderation
	workbench  *postgres.Workbench
	duplicates *postgres.Duplicates
	deadlines  *postgres.Deadlines
	questions  *postgres.Questions
	upkeep     *upkeep.Store
	city       *settings.City
	desk       *settings.Desk

	t        *testing.T
	db       *postgres.DB
	database string
	pool     *pgxpool.Pool
	keys     *event.Keyring
	wakes    atomic.Int64  // how often the relay was woken
	woken    atomic.Uint32 // for which shards
}

// newFixture returns a running one whose connections have the given parameters,
// as name and value.
func newFixture(t *testing.T, parameters ...string) *fixture {
	t.Helper()
	f := idleFixture(t, parameters...)
	f.start()
	return f
}

// idleFixture returns one that makes no changes until it is started.
func idleFixture(t *testing.T, parameters ...string) *fixture {
	t.Helper()
	return openFixture(t, pgtest.Report(t).Config().ConnString(), parameters...)
}

// recipientKey is that of all replicas, unless a test is about it.
var recipientKey = event.NewKey("k1")

func openFixture(t *testing.T, database string, parameters ...string) *fixture {
	t.Helper()
	return openKeyed(t, database, recipientKey, parameters...)
}

func openKeyed(t *testing.T, database, key string, parameters ...string) *fixture {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("pool_max_conns", "8")
	// Locks are held for as long as a test takes, whatever else the machine does.
	for _, limit := range []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"} {
		query.Set(limit, "0")
	}
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	u.RawQuery = query.Encode()
	pool, err := pgpool.Open(context.WithoutCancel(t.Context()), u.String(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	keys, err := event.ParseKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, database: database, pool: pool, keys: keys}
	db := postgres.NewDB(pool, keys, func(shards shards.Set) {
		f.wakes.Add(1)
		f.woken.Or(uint32(shards))
	}, postgres.Rules{QuestionDays: questionDays, GuestReports: 5})
	f.db, f.Reports, f.comments, f.photos = db, postgres.NewReports(db), postgres.NewComments(db), postgres.NewPhotos(db)
	f.categories, f.areas = settings.NewCategories(db.City()), settings.NewAreas(db.City())
	f.city, f.desk = db.City(), settings.NewDesk(db.City())
	f.moderation, f.workbench, f.duplicates = postgres.NewModeration(db), postgres.NewWorkbench(db), postgres.NewDuplicates(db)
	f.checks, f.deadlines, f.upkeep = postgres.NewPhotoChecks(db), postgres.NewDeadlines(db), upkeep.New(pool, keys, db)
	f.questions = postgres.NewQuestions(db)
	return f
}

// start runs the store until the test ends.
func (f *fixture) start() {
	ctx, end := context.WithCancel(context.WithoutCancel(f.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f.db.Run(ctx) }()
	f.t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			f.t.Errorf("Run: %v", err)
		}
	})
}

// replica returns another running store on the same database, as another
// process has one.
func (f *fixture) replica() *fixture {
	f.t.Helper()
	other := openFixture(f.t, f.database)
	other.start()
	return other
}

// holdAnnouncements stops whoever writes the outbox until the transaction ends.
func (f *fixture) holdAnnouncements() pgx.Tx {
	f.t.Helper()
	f.exec(`create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return new; end $$`)
	f.exec(`create trigger hold before insert on outbox_messages for each row execute function hold()`)
	tx, err := f.pool.Begin(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(f.t.Context())) })
	if _, err := tx.Exec(f.t.Context(), `select pg_advisory_xact_lock(1)`); err != nil {
		f.t.Fatal(err)
	}
	return tx
}

func draft(privacy report.Privacy) report.Report {
	return report.Report{
		Title: "Dark lamp", Description: "at the crossing", Category: report.Category{ID: 2, Name: "Street lights and signals"},
		Position: &report.Position{Latitude: -6.9, Longitude: 107.6}, Address: "Jl. Asia Afrika 8", Privacy: privacy,
	}
}

// filing returns a report that is not stored yet.
func filing(d report.Report, by report.Reporter, at time.Time) *report.Filing {
	f, err := report.New(d, by, at)
	if err != nil {
		panic(err)
	}
	return &f
}

// file stores a report of by and returns it.
func (f *fixture) file(by report.Reporter, d report.Report) report.Filing {
	f.t.Helper()
	stored := filing(d, by, time.Now())
	if _, err := f.Create(f.t.Context(), stored, nil); err != nil {
		f.t.Fatalf("Create: %v", err)
	}
	return *stored
}

// Vote casts a vote at any version.
func (f *fixture) Vote(ctx context.Context, id uuid.UUID, voter string, vote report.Vote) (report.Tally, error) {
	return f.Reports.Vote(ctx, id, report.Ballot{Voter: voter, Vote: vote})
}

// A row is an outbox row.
type row struct {
	ID      uuid.UUID
	Key     string
	Payload json.RawMessage
	Report  uuid.UUID
	Version int64
	Shard   int16
	Headers map[string]string // with the recipient, as the relay sends it
	Without bool              // the row itself has no recipient
}

// outbox returns the rows in the order in which they are published.
func (f *fixture) outbox() []row {
	f.t.Helper()
	rows, err := f.pool.Query(f.t.Context(), `
		select id, routing_key, payload, report_id, report_version, shard, headers, not headers ? 'x-recipient'
		from outbox_messages where status = 'pending' order by seq`)
	if err != nil {
		f.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		f.t.Fatal(err)
	}
	for _, r := range all {
		if r.Without {
			r.Headers[event.RecipientHeader] = f.keys.Seal(r.Report, f.reporter(r.Report))
		}
	}
	return all
}

// reporter returns who filed a report, and "" after an erasure.
func (f *fixture) reporter(id uuid.UUID) (user string) {
	f.t.Helper()
	err := f.pool.QueryRow(f.t.Context(), `select coalesce(max(reporter_id), '') from reporters where report_id = $1`, id).Scan(&user)
	if err != nil {
		f.t.Fatal(err)
	}
	return user
}

// count returns how many rows each table has.
func (f *fixture) count() map[string]int {
	f.t.Helper()
	counts := make(map[string]int)
	for _, table := range []string{"reports", "reporters", "status_history", "votes", "idempotency_keys", "outbox_messages"} {
		var n int
		if err := f.pool.QueryRow(f.t.Context(), `select count(*) from `+table).Scan(&n); err != nil {
			f.t.Fatal(err)
		}
		counts[table] = n
	}
	return counts
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.pool.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

// wantUnavailable fails the test unless err says that the same may succeed later.
func wantUnavailable(t *testing.T, err error) {
	t.Helper()
	if class := pgpool.Classify(err); class != pgpool.Away && class != pgpool.Busy {
		t.Errorf("class %q, want away or busy (error: %v)", class, err)
	}
}

// wantKind fails the test unless err is of the kind.
func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if got := fault.KindOf(err); got != want || (err != nil) != (want != "") {
		t.Errorf("kind %q, want %q (error: %v)", got, want, err)
	}
}

// waitForLock waits until so many transactions wait for a lock.
func (f *fixture) waitForLock(n int) {
	f.t.Helper()
	eventually.True(f.t, "a transaction waits for a lock", func() bool {
		var waiting int
		err := f.pool.QueryRow(f.t.Context(), `
			select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting == n
	})
}
