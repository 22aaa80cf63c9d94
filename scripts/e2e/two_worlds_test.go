package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// A world is what everyone but the two residents can see of a stack in which one
// of them filed an anonymous report: by observer, without what is random or a
// time. Two worlds that differ in nothing but the author must look the same, to
// the byte and in their order. A search for the author's name, as in
// TestPrivacyCanary, cannot see that a size or an order gives the author away.
//
// PostgreSQL's log, for which each world would need a server of its own, is looked
// at by TestDatabaseLogNamesNobody. Nothing fails here for a while, so that nothing
// goes through the exchanges of retries.
type world map[string][]string

// The two have ids and names of different length, so that whatever depends on
// them differs in size.
var (
	ann  = person{id: "u-ann-7f3a", name: "Ann"}
	bene = person{id: "federated|bandung|0198c0de-77", name: "Benedictus Maximilian Wijaya"}
)

type person struct {
	id, name string
	guest    bool // without an account
}

// token is what the person signs in with.
func (p person) token() string {
	if p.guest {
		return guestToken(p.id)
	}
	return token(jwt.MapClaims{"sub": p.id, "name": p.name, "role": "resident"})
}

// The author of an anonymous report cannot be told from what others see.
func TestTwoWorldsLookTheSame(t *testing.T) {
	t.Parallel()
	compareWorlds(t, "account/account", func(t *testing.T, other, leak bool) world {
		if other {
			return play(t, bene, leak)
		}
		return play(t, ann, leak)
	})
}

// compareWorlds plays a pair of worlds, the one that others are compared with twice. Without
// the second time the test might find every difference and know of none; without the world
// with a planted leak it might find none and see nothing.
func compareWorlds(t *testing.T, pair string, play func(t *testing.T, other, leak bool) world) {
	t.Helper()
	worlds := make(map[string]world)
	var mu sync.Mutex
	t.Run("worlds", func(t *testing.T) { // returns when all are over
		for name, is := range map[string]struct{ other, leak bool }{"one": {}, "one again": {}, "other": {other: true}, "leak": {true, true}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := play(t, is.other, is.leak)
				mu.Lock()
				defer mu.Unlock()
				worlds[name] = w
			})
		}
	})
	if t.Failed() {
		return
	}
	one := worlds["one"]
	if one.differsFrom(t, worlds["one again"]) {
		t.Fatal("two equal worlds differ: the test cannot tell what changes them")
	}
	if one.differsFrom(t, worlds["other"]) {
		t.Errorf("%s: one can be told from the other", pair)
	}
	leaks := one.differences(worlds["leak"])
	if len(leaks) == 0 {
		t.Errorf("%s: the test does not see the leak that was planted", pair)
	}
	answered := make(map[string]bool)
	lines := 0
	for _, seen := range one {
		lines += len(seen)
		for _, line := range seen {
			if answer := anAnswer.FindStringSubmatch(line); answer != nil {
				answered[answer[1]] = true
			}
		}
	}
	fmt.Printf("worlds pair=%s operations=%d observers=%d comparisons=%d differences=%d leaks_seen=%d\n",
		pair, len(answered), len(one), lines, len(one.differences(worlds["other"])), len(leaks))
}

// anAnswer is the line of an operation's answer.
var anAnswer = regexp.MustCompile(`^((?:[A-Z]+ )?/\S+) \d{3} `)

// plantLeak makes the size of an anonymous report depend on who has filed it.
func (c *stack) plantLeak() {
	c.t.Helper()
	execute(c.t, c.reportDB, `
		update reports r set description = description || repeat('.', length(p.reporter_id))
		from reporters p where p.report_id = r.id and privacy_level = 'anonymous'`)
}

// differsFrom reports each observer of whom one world has another line than the other.
func (w world) differsFrom(t *testing.T, other world) (differs bool) {
	t.Helper()
	for _, d := range w.differences(other) {
		t.Error(d)
		differs = true
	}
	return differs
}

// differences returns the first line of each observer that one world has and the other has
// not.
func (w world) differences(other world) (all []string) {
	observers := slices.Sorted(maps.Keys(w))
	if got := slices.Sorted(maps.Keys(other)); !slices.Equal(got, observers) {
		return []string{fmt.Sprintf("the observers are %q and %q", observers, got)}
	}
	for _, observer := range observers {
		a, b := w[observer], other[observer]
		if len(a) == 0 {
			all = append(all, observer+" saw nothing: the test proves nothing")
		}
		for i := range max(len(a), len(b)) {
			var one, two string
			if i < len(a) {
				one = a[i]
			}
			if i < len(b) {
				two = b[i]
			}
			if one != two {
				all = append(all, fmt.Sprintf("%s, item %d of %d and %d:\n  %.600s\n  %.600s", observer, i, len(a), len(b), one, two))
				break // what follows is often only shifted
			}
		}
	}
	return all
}

// before is how many reports were filed before the others begin to look.
const before = 1

// play lets a stack live through a day in which author files the anonymous report, and returns
// what the others see of it.
func play(t *testing.T, author person, leak bool) world {
	t.Helper()
	c, w := prepareStack(t), world{}
	people, named := c.peopleWith(author)
	w.addGateway(t, c.enterByNginx()) // once nothing enters
	residents := c.openPages(people...)
	carl, olga, pavel := c.userOf("carl", "resident"), c.userOf("olga", "official"), c.userOf("pavel", "operator")
	c.setAreas(pavel)
	c.setAssets(pavel)
	olgas := watch(t, olga)
	nameless := c.hideAName(residents[named], named)
	olgas.await(before)
	through, feed, other := c.spyOnExchanges(), c.listenToFeed(), openOtherSystem(t) // which had the name until now
	other.register(c, pavel)
	c.startPhotoWorker()

	announced := func(events int) {
		olgas.await(before + events)
		feed.await(t, events)
		other.await(events)
	}
	reports := fileThree(t, residents, author, announced)
	annsReport, benesReport, anonymous := reports[0], reports[1], reports[2]
	if leak {
		c.plantLeak()
	}
	c.loadPages(residents, reports)
	carls, events := followEachOther(t, carl, residents[author].Client, anonymous), len(reports)+1
	announced(events)

	others := func() {
		events++
		feed.await(t, events)
		c.awaitOutcomes(other, events)
	}
	await := func(report client.Report) {
		reader := residents[author] // of the anonymous one, and of carl's, which the author follows
		switch report.ID {
		case annsReport.ID:
			reader = residents[ann]
		case benesReport.ID:
			reader = residents[bene]
		}
		reader.seen++
		reader.screen.await(reader.seen)
		others()
	}
	for _, voteType := range []string{"upvote", "downvote"} {
		for _, report := range reports {
			vote(t, carl, report, voteType)
			await(report)
		}
	}
	work(t, olga, anonymous, benesReport)
	correctOwn(t, residents[author].Client, anonymous)
	others()
	moderate(t, c.Client, carl, olga, anonymous, await)
	talk(t, residents[author], carl, olgas, anonymous, await)
	// The upload is the same, whoever the author is.
	photo := c.upload(residents[author].Client, anonymous, smallPicture(t))
	if named != author { // photos of all residents are held then
		c.showPhoto(olga, anonymous, photo)
	}
	await(anonymous)
	move(t, olga, anonymous, "in_progress", "Seen")
	await(anonymous)
	say(t, olga, anonymous, "We look at it on Thursday")
	await(anonymous)
	correct(t, olga, anonymous)
	await(anonymous)
	move(t, olga, carls, "in_progress", "Seen")
	await(carls)
	dispute(t, residents[author].Client, olga, anonymous, benesReport, await, others)
	c.breakMessage(anonymous, author)
	c.loadPages(residents, reports)

	c.observe(w, append(reports, carls, nameless), map[string]*client.Client{"carl": carl, "olga": olga}, pavel)
	w["the feed"] = feed.lines()
	w.addPhoto(c, carl, photo, anonymous)
	w.addOtherSystem(c, other)
	for exchange, s := range through {
		w.addExchange(exchange, s)
	}
	return w
}

// peopleWith starts the stack, and returns who opens a page, and who of them files the
// report that has a name at first. An author beside the two lives in a city with guests.
func (c *stack) peopleWith(author person) (people []person, named person) {
	c.t.Helper()
	people, named = []person{ann, bene}, author
	c.switchCommentsOn()
	if author != ann && author != bene {
		c.switchGuestsOn()
		people, named = append(people, author), ann
	}
	c.start()
	return people, named
}

// fileThree has each file a report under their name, and author a third one without. All
// that happens waits for what happened before, so that the order is not random.
func fileThree(t *testing.T, residents map[person]*resident, author person, await func(events int)) (reports []client.Report) {
	t.Helper()
	for _, filed := range []struct {
		by             person
		title, privacy string
	}{
		{ann, "A dark crossing", "public"}, {bene, "A dark corner", "public"}, {author, "A landlord threatens us", "anonymous"},
	} {
		in := draft(filed.title)
		in.PrivacyLevel, in.Asset = client.PrivacyLevel(filed.privacy), "lamps/L-7"
		report, err := residents[filed.by].CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
		if err != nil {
			t.Fatalf("file a report: %v", err)
		}
		reports = append(reports, report)
		await(len(reports))
	}
	return reports
}

// dispute has the author of a report say that it is not fixed, then that it is, and dispute it
// once more after it was reopened, until an official keeps it resolved. The author's own
// stream has nothing of a verdict: others await it.
func dispute(t *testing.T, author, olga *client.Client, report, duplicate client.Report, await func(client.Report), others func()) {
	t.Helper()
	if err := olga.Do(t.Context(), http.MethodDelete, "/reports/"+duplicate.ID.String()+"/duplicate-of", nil, nil); err != nil {
		t.Fatalf("end a duplicate: %v", err) // it would end at the same moment
	}
	move(t, olga, report, "resolved", "Done")
	await(report)
	giveVerdict(t, author, report, false, "It is as it was")
	others()
	giveVerdict(t, author, report, true, "")
	others()
	move(t, olga, report, "in_progress", "Seen")
	await(report)
	move(t, olga, report, "resolved", "Done")
	await(report)
	giveVerdict(t, author, report, false, "It is as it was")
	others()
	keepResolved(t, olga, report, "It was fixed at our visit")
	await(report)
}

// spyOnExchanges listens to all that the services publish, by exchange.
func (c *stack) spyOnExchanges() map[string]*spy {
	through := map[string]*spy{}
	for _, exchange := range []string{topology.Exchange(), topology.DeadLetterExchange(), topology.LiveExchange(), topology.ProgressExchange()} {
		through[exchange] = c.spyOn(exchange)
	}
	return through
}

// awaitOutcomes returns when the other system has had n events, and each of its
// answers is noted: hiding a report cancels what seems to wait.
func (c *stack) awaitOutcomes(other *otherSystem, n int) {
	c.t.Helper()
	other.await(n)
	eventually.True(c.t, "no delivery to other systems waits", func() bool {
		var waiting int
		err := c.notificationDB.QueryRow(c.t.Context(), `select count(*) from deliveries where channel = 'webhook' and state = 'waiting'`).Scan(&waiting)
		return err == nil && waiting == 0
	})
}

// comment has user say something about a report.
func comment(t *testing.T, user *client.Client, report client.Report, anonymous bool) {
	t.Helper()
	body := map[string]any{"text": "It is dark again", "anonymous": anonymous}
	if err := user.Do(t.Context(), http.MethodPost, "/reports/"+report.ID.String()+"/comments", body, nil); err != nil {
		t.Fatalf("comment on a report: %v", err)
	}
}

// talk comments on a report: its author without a name, and carl by name. Then its author
// answers a question of the official who looks at olgas.
func talk(t *testing.T, author *resident, carl *client.Client, olgas *screen, report client.Report, await func(client.Report)) {
	t.Helper()
	comment(t, author.Client, report, true)
	await(report)
	comment(t, carl, report, false)
	await(report)
	author.converse(t, olgas, report)
}

// converse has olga ask the resident something about their report, and withdraw a second
// question after the answer to the first. Nobody else is notified of it.
func (r *resident) converse(t *testing.T, olgas *screen, report client.Report) {
	t.Helper()
	olga := olgas.user
	shown, _ := olgas.count()
	askReporter(t, olga, report, "Which of the two doors?")
	r.seen++
	r.screen.await(r.seen)
	answerQuestion(t, r.Client, report, "The one at the back.")
	olgas.await(shown + 1) // two notifications at once would go through the exchange together
	var second struct{ ID uuid.UUID }
	path := "/reports/" + report.ID.String() + "/questions"
	err := olga.Do(t.Context(), http.MethodPost, path, map[string]string{"text": "Since when?"}, &second)
	r.seen++
	r.screen.await(r.seen)
	if err == nil {
		err = olga.Do(t.Context(), http.MethodDelete, path+"/"+second.ID.String(), nil, nil)
	}
	if err != nil {
		t.Fatalf("ask again: %v", err)
	}
}

// addPhoto adds what anybody is served of a photo, and what whoever can read the
// storage finds: keys, which are random, rights and sizes. Sizes are those of the
// picture and not padded: they tell the one picture from another, and the same
// one is as large whoever uploads it.
func (w world) addPhoto(c *stack, user *client.Client, photo uuid.UUID, report client.Report) {
	c.t.Helper()
	paths := []string{"/reports/" + report.ID.String() + "/photos"}
	for _, size := range []string{"2048", "1024", "320"} {
		paths = append(paths, "/photos/"+photo.String()+"/"+size+".jpg")
	}
	w["a photo"] = c.answers(user, paths)
	folder := strings.TrimPrefix(c.photo.env["PHOTO_STORE"], "file://")
	eventually.True(c.t, "the upload is deleted", func() bool {
		return len(must(filepath.Glob(filepath.Join(folder, "quarantine", "*")))) == 0
	})
	err := filepath.Walk(folder, func(path string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		w["the storage"] = append(w["the storage"], withoutChance(fmt.Sprint(strings.TrimPrefix(path, folder), " ", info.Mode(), " ", info.Size())))
		return nil
	})
	if err != nil || len(w["the storage"]) != len(paths)-1 {
		c.t.Errorf("the storage has %q, error %v; want the pictures alone", w["the storage"], err)
	}
}

// openPages lets residents in, one after the other.
func (c *stack) openPages(people ...person) map[person]*resident {
	c.t.Helper()
	residents := map[person]*resident{}
	for _, p := range people {
		r := &resident{Client: c.As(p.id, p.token()), place: len(residents)}
		r.load(c, nil)
		r.screen = watch(c.t, r.Client)
		residents[p] = r
	}
	return residents
}

// loadPages has residents load the page with the reports, one after the other.
func (c *stack) loadPages(residents map[person]*resident, reports []client.Report) {
	c.t.Helper()
	all := slices.SortedFunc(maps.Values(residents), func(a, b *resident) int { return a.place - b.place })
	for _, r := range all {
		r.load(c, reports)
	}
}

// followEachOther has the author of the anonymous report follow one of carl's,
// which it returns, and carl the anonymous one.
func followEachOther(t *testing.T, carl, author *client.Client, anonymous client.Report) client.Report {
	t.Helper()
	carls := must(carl.CreateReport(t.Context(), draft("A dark square"), "Idempotency-Key", uuid.NewString()))
	follow(t, author, carls)
	follow(t, carl, anonymous)
	return carls
}

// follow has user notified of changes of the report's status.
func follow(t *testing.T, user *client.Client, report client.Report) {
	t.Helper()
	if err := user.Do(t.Context(), http.MethodPut, "/me/follows/"+report.ID.String(), nil, nil); err != nil {
		t.Fatalf("follow a report: %v", err)
	}
}

// addExchange adds what went through an exchange, but for manifests: which messages are in
// which depends on the minute.
func (w world) addExchange(name string, s *spy) {
	seen, _ := s.all()
	for _, d := range seen {
		if d.RoutingKey == string(event.ManifestKey) {
			continue
		}
		w["exchange "+name] = append(w["exchange "+name], describeDelivery(d))
	}
	slices.Sort(w["exchange "+name]) // three queues, two replicas' connections: the order is chance
}

// hideAName has the author file a report under their name, of which somebody breaks a
// message, and hide the name. It returns the report once no process has anything left to
// do about it.
func (c *stack) hideAName(user *resident, author person) client.Report {
	c.t.Helper()
	in := draft("A dark stair")
	in.PrivacyLevel = "public"
	report, err := user.CreateReport(c.t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err != nil {
		c.t.Fatalf("file a report: %v", err)
	}
	// The log has at which byte it is broken, from before the name is hidden.
	c.breakWith(report, author, `{!"report_id":"`+report.ID.String()+`","reporter_id":"`+author.id+`","reporter_name":"`+author.name, 1)
	if err := user.Do(c.t.Context(), http.MethodPut, "/reports/"+report.ID.String()+"/privacy", map[string]string{"privacy_level": "anonymous"}, &report); err != nil {
		c.t.Fatalf("hide the name: %v", err)
	}
	eventually.True(c.t, "no process has the name", func() bool {
		var reports, notifications bool
		err := c.reportDB.QueryRow(c.t.Context(), `
			select not exists (select from hidden_names) and not exists (select from outbox_messages where status = 'pending')`).Scan(&reports)
		if err == nil {
			err = c.notificationDB.QueryRow(c.t.Context(), `
				select exists (select from notifications where type = 'report.moderated' and report_id = $1)`, report.ID).Scan(&notifications)
		}
		return err == nil && reports && notifications
	})
	user.seen++
	user.screen.await(user.seen)
	return report
}

// breakMessage publishes a message about author's report that nobody
// understands, and waits until it is a dead letter.
func (c *stack) breakMessage(report client.Report, author person) {
	c.t.Helper()
	c.breakWith(report, author, `{"report_id":`, 2) // the first one was broken before
}

// breakWith publishes a message with a body that nobody understands, and waits until there
// are so many dead letters.
func (c *stack) breakWith(report client.Report, author person, body string, letters int) {
	c.t.Helper()
	broken := c.message(event.VoteReceivedKey, report.ID, author.id, body)
	// To one queue: which of two archives its dead letter first is chance.
	if err := c.channel().PublishWithContext(c.t.Context(), "", topology.Queue(event.VoteReceivedKey), false, false, broken); err != nil {
		c.t.Fatal(err)
	}
	eventually.True(c.t, "the dead letter is archived", func() bool {
		var archived int
		err := c.notificationDB.QueryRow(c.t.Context(), `select count(*) from dead_letters`).Scan(&archived)
		return err == nil && archived == letters
	})
}

// work is what an official does of which no resident learns.
func work(t *testing.T, olga *client.Client, report, duplicate client.Report) {
	t.Helper()
	for _, act := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPut, "/reports/" + report.ID.String() + "/assignment", map[string]any{"assignee": map[string]string{"id": "olga", "name": "Olga"}}},
		{http.MethodPost, "/reports/" + report.ID.String() + "/notes", map[string]string{"text": "Ask the neighbours"}},
		{http.MethodPut, "/reports/" + duplicate.ID.String() + "/duplicate-of", map[string]any{"original": report.ID}},
	} {
		if err := olga.Do(t.Context(), act.method, act.path, act.body, nil); err != nil {
			t.Fatalf("%s %s: %v", act.method, act.path, err)
		}
	}
}

// moderate has a resident and somebody without an account report abuse, and an official hide the report, redact it
// and show it again.
func moderate(t *testing.T, nobody, carl, olga *client.Client, report client.Report, await func(client.Report)) {
	t.Helper()
	path := "/reports/" + report.ID.String()
	for _, complainant := range []*client.Client{carl, nobody} {
		if err := complainant.Do(t.Context(), http.MethodPost, path+"/abuse", map[string]string{"reason": "personal_data", "text": "It names the landlord"}, nil); err != nil {
			t.Fatalf("report abuse: %v", err)
		}
	}
	for _, act := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPut, path + "/hidden", map[string]string{"reason": "It names somebody"}},
		{http.MethodDelete, path + "/hidden", nil},
		{http.MethodPatch, path + "/words", map[string]string{"description": "[redacted]", "reason": "A name"}},
	} {
		if err := olga.Do(t.Context(), act.method, act.path, act.body, nil); err != nil {
			t.Fatalf("%s %s: %v", act.method, act.path, err)
		}
		await(report)
	}
}

// addOtherSystem adds what another system was sent, and what the worker that sent it
// has logged.
func (w world) addOtherSystem(c *stack, other *otherSystem) {
	requests, _ := other.seen()
	for _, request := range requests {
		w["the other system"] = append(w["the other system"], withoutChance(request))
	}
	for line := range strings.Lines(c.worker.log.String() + c.photo.log.String()) {
		if !aboutTheMachine(line) {
			w["log of the worker"] = append(w["log of the worker"], withoutChance(line))
		}
	}
	slices.Sort(w["log of the worker"])
	w["log of the worker"] = slices.Compact(w["log of the worker"])
}

// aboutTheMachine reports whether a line of a log says that a server or another part did
// not answer in time, as it happens where a machine has too much to do.
func aboutTheMachine(line string) bool {
	return slices.ContainsFunc([]string{
		"health changed", "will retry", "will dial again", "will subscribe again", "will reconnect", "circuit", "unblocked publishers",
		"blocks publishers", `"shards `, "stalled workers", "waits for its turn", "the message before this one",
	}, func(part string) bool { return strings.Contains(line, part) })
}

// enterByNginx has all requests go through the gateway as it is, instead of the
// proxy that most tests do with.
func (c *stack) enterByNginx() gatewaytest.Gateway {
	c.t.Helper()
	g := gatewaytest.Start(c.t, addresses([]*process{c.report}), addresses([]*process{c.notification}), "GATEWAY_LIMITS", "off")
	c.gateway.URL = g.URL
	c.Client = client.New(g.URL)
	c.t.Cleanup(c.CloseIdle)
	return g
}

// addGateway adds both logs of the gateway when t ends, and with it all that began
// later: then nginx has ended, and has written every line.
func (w world) addGateway(t *testing.T, g gatewaytest.Gateway) {
	t.Cleanup(func() {
		g.Stop()
		for name, file := range map[string]string{"access log of the gateway": g.AccessLog, "error log of the gateway": g.ErrorLog} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("read %s: %v", name, err)
			}
			w[name] = []string{name} // an empty one is equal as well
			for line := range strings.Lines(string(text)) {
				if !strings.Contains(line, "/stream") { // they are logged when they end
					w[name] = append(w[name], withoutChance(strings.TrimSpace(line)))
				}
			}
			slices.Sort(w[name]) // its workers write side by side
		}
	})
}

// addMetrics adds what a program counts: all names with their labels, and how
// many messages and requests there were. How long something took, and how often a
// program looked for work, is chance.
func (w world) addMetrics(t *testing.T, p *process) {
	t.Helper()
	status, answer, err := operation{http.MethodGet, "/metrics", nil, "/metrics"}.send(t.Context(), p.operations(), "")
	if err != nil || status != http.StatusOK {
		t.Fatalf("read the metrics of %s: answered %d, error %v", p.path, status, err)
	}
	name := "metrics of " + filepath.Base(p.path)
	for line := range strings.Lines(string(answer)) {
		series := metric.FindStringSubmatch(line)
		if series == nil || byChance.MatchString(line) {
			continue
		}
		if counted.MatchString(line) {
			w[name] = append(w[name], strings.TrimSpace(line))
		} else {
			w[name] = append(w[name], series[1])
		}
	}
	slices.Sort(w[name])
}

var (
	// metric is a line of an answer with metrics: a name with its labels, and a number.
	metric = regexp.MustCompile(`^([a-z_]+(?:\{.*\})?) [-+0-9.eInfNa]+\s*$`)
	// byChance are durations, and what depends on them: which schedules were due,
	// whether queues and workers were looked at already, whether a connection broke,
	// which attempt found the other system not yet ready; and on which shard a random
	// id lies.
	byChance = regexp.MustCompile(`^(go_|process_|[a-z_]+_seconds|schedule_|retention_|consumer_(queue_|retry_queue_|workers|messages_redelivered)|dead_letters_open|delivery_attempts|outbox_|reconciliation_|relay_manifests_)|/(stream|readyz)"`)
	// counted is what each message or request changes by one.
	counted = regexp.MustCompile(`^(relay_(published|refused|overtaken|republished)|consumer_messages_(acked|nacked|retried|parked|dead_lettered)|delay_messages_released|deliveries_ended|photos_judged|mails_[a-z]+|http_requests)_total`)
)

// observe looks at answers, tables, logs and metrics.
func (c *stack) observe(w world, reports []client.Report, readers map[string]*client.Client, operator *client.Client) {
	for name, user := range readers {
		paths := []string{"/categories", "/categories?include=retired", "/reports", "/reports/mine", "/notifications", "/notifications/unread-count", "/me/follows", "/map/points?zoom=3&bbox=-180,-90,180,90",
			"/areas", "/reports?area=south", "/reports?area=north", "/reports?asset=lamps/L-7", "/map/assets?asset=lamps/L-7", "/map/assets?bbox=107,-7,108,-6",
			"/open-data/reports.csv", "/open-data/reports.geojson", "/open-data/reports.atom",
			"/open311/v2/requests.xml", "/open311/v2/requests.json?q=landlord", "/open311/v2/servicerequestupdates.xml", "/open311/v2/servicerequestupdates.json"}
		for _, report := range reports {
			paths = append(paths, "/reports/"+report.ID.String(), "/reports/"+report.ID.String()+"/history", "/reports/"+report.ID.String()+"/preview",
				"/reports/"+report.ID.String()+"/preview?lang=id",
				"/open311/v2/requests/"+report.ID.String()+".xml", "/open311/v2/tokens/"+report.ID.String()+".json",
				"/reports/"+report.ID.String()+"/comments")
		}
		w[name] = c.answers(user, paths)
	}
	workbench := []string{
		"/reports/queue", "/reports/queue/counts", "/reports/queue?area=south", "/reports/queue?order=changed", "/reports/export", "/reports/numbers?interval=day",
		"/reports/moves", "/reports/categories", "/reports/areas", "/reports/assets", "/reports/departments", "/reports/templates", "/reports/views", "/reports/queue/abuse", "/reports/queue?hidden=true",
		"/reports/queue?disputed=true", "/reports/queue/waiting",
	}
	for _, report := range reports {
		workbench = append(workbench, "/reports/"+report.ID.String()+"/work", "/reports/"+report.ID.String()+"/dialogue")
	}
	w["the workbench"] = c.answers(readers["olga"], workbench)
	w["the operator"] = c.answers(operator, []string{
		"/admin/outbox/messages", "/admin/outbox/audit", "/admin/dlq/messages", "/admin/dlq/messages/1",
		"/admin/dlq/groups", "/admin/dlq/stats", "/admin/dlq/export", "/admin/dlq/audit",
		"/reports/categories", "/reports/categories/changes", "/admin/webhooks", "/admin/open311/targets", "/admin/open311/differences", "/admin/deliveries/1", "/admin/deliveries?report_id=" + reports[0].ID.String(),
		"/admin/reports/open311/keys",
	})
	connected := []string{"/reports/connection", "/reports/connection?without_number=true"}
	for _, report := range reports {
		connected = append(connected, "/reports/"+report.ID.String()+"/connection", "/reports/"+report.ID.String()+"/history")
	}
	connection := c.connect(reports[0].ID)
	w["a connection"] = c.answers(connection, connected)
	for _, report := range reports {
		w["updates by Open311"] = append(w["updates by Open311"], c.update(c.gateway.URL, connection, report.ID, "", "crew", "crew@surel.test"))
	}
	w["the stories of messages"] = c.stories(operator)
	w.readTables(c.t, c.reportDB, "reporters", "commenters")
	w.readTables(c.t, c.notificationDB, "streams")
	for name, p := range map[string]*process{"report-service": c.report, "notification-service": c.notification} {
		for _, line := range p.log.messages("request") {
			// Streams are logged when they end; probes wait for the start.
			if !strings.Contains(line, "/stream") && !strings.Contains(line, "/readyz") {
				w["access log of "+name] = append(w["access log of "+name], withoutChance(line))
			}
		}
		for line := range strings.Lines(p.log.String()) {
			if !strings.Contains(line, "/readyz") && !aboutTheMachine(line) {
				w["log of "+name] = append(w["log of "+name], withoutChance(line))
			}
		}
		slices.Sort(w["log of "+name]) // parts that work at the same time log in any order
		w["log of "+name] = slices.Compact(w["log of "+name])
	}
	for _, p := range []*process{c.report, c.notification, c.worker, c.photo} {
		w.addMetrics(c.t, p)
	}
}

// A resident loads the page and watches their stream.
type resident struct {
	place int // in which the resident came
	*client.Client
	screen *screen
	seen   int
}

// load asks for what the page asks for at its start.
func (r *resident) load(c *stack, reports []client.Report) {
	paths := []string{"/session", "/categories", "/reports", "/reports/mine", "/notifications"}
	for _, report := range reports {
		paths = append(paths, "/reports/"+report.ID.String())
	}
	for _, path := range paths {
		if err := r.Do(c.t.Context(), http.MethodGet, path, nil, nil); err != nil {
			c.t.Fatalf("load the page: %v", err)
		}
	}
}

// A feed keeps what the public stream showed.
type feed struct {
	mu   sync.Mutex
	data []string
}

func (c *stack) listenToFeed() *feed {
	c.t.Helper()
	return c.listenTo(c.Client, "/feed/stream", "")
}

// listenTo keeps what a stream shows to user, after the event with an id or from now on.
func (c *stack) listenTo(user *client.Client, path, after string) *feed {
	c.t.Helper()
	f, ready := &feed{}, make(chan struct{})
	s := &client.Stream{Client: user, Path: path, LastID: after, Raw: func(e sse.Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if e.Type == sse.Ready {
			close(ready)
			return
		}
		f.data = append(f.data, withoutChance(e.Type+" "+string(e.Data)))
	}}
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	c.t.Cleanup(func() { cancel(); <-done })
	<-ready
	return f
}

func (f *feed) await(t *testing.T, n int) {
	t.Helper()
	eventually.True(t, fmt.Sprint("the feed has ", n, " events"), func() bool { return len(f.lines()) >= n })
}

func (f *feed) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.data)
}

// answers returns what user is answered at each path, headers included.
func (c *stack) answers(user *client.Client, paths []string) []string {
	c.t.Helper()
	var all []string
	for _, path := range paths {
		status, answer, err := operation{http.MethodGet, path, nil, path}.send(c.t.Context(), c.gateway.URL, user.Token())
		if err != nil || status != http.StatusOK {
			c.t.Errorf("GET %s: answered %d %s, error %v", path, status, answer, err)
		}
		all = append(all, withoutChance(fmt.Sprint(path, " ", status, " ", string(answer))))
	}
	return all
}

// stories returns what operators see of each message's way. Processes that handle a message
// at the same time do so in any order, and what takes less than a millisecond has no duration.
func (c *stack) stories(operator *client.Client) (all []string) {
	c.t.Helper()
	rows, err := c.reportDB.Query(c.t.Context(), `select id::text, report_id::text from outbox_messages order by seq`)
	if err != nil {
		c.t.Fatal(err)
	}
	var paths []string
	var id, report string
	_, err = pgx.ForEachRow(rows, []any{&id, &report}, func() error {
		paths = append(paths, "/admin/outbox/messages/"+id+"/story", "/admin/messages/"+id+"/story?report_id="+report)
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, told := range c.answers(operator, paths) {
		// The message comes after the last entry, whichever that is.
		told = strings.ReplaceAll(strings.ReplaceAll(told, `,"NUMBER"`, ""), "}],", "},{")
		entries := strings.Split(told, "},{")
		for i, entry := range entries { // without the brackets around them
			if _, after, ok := strings.Cut(entry, `"at"`); ok {
				entry = after
			}
			entries[i] = strings.TrimRight(entry, "}]\n")
		}
		slices.Sort(entries)
		all = append(all, strings.Join(entries, "\n"))
	}
	slices.Sort(all)
	return all
}

// describeDelivery returns a message with everything that a program sees of it.
func describeDelivery(d amqp.Delivery) string {
	return withoutChance(fmt.Sprintf("%s %q %s", d.RoutingKey, fmt.Sprint(d.Headers), d.Body))
}

// readTables reads every table but those in private, which know people, the runs of
// schedules, which are as many as minutes have passed, the history, which has numbers of
// every ten seconds, and the manifests, which have the ids of a minute's messages.
func (w world) readTables(t *testing.T, db *pgxpool.Pool, private ...string) {
	t.Helper()
	for _, table := range tables(t, db) {
		if slices.Contains(private, table) || table == "schedule_runs" || table == "history" || strings.HasSuffix(table, "_manifests") {
			continue
		}
		rows, err := db.Query(t.Context(), `select to_jsonb(r)::text from `+table+` r`)
		if err != nil {
			t.Fatalf("read %s: %v", table, err)
		}
		w["table "+table] = []string{"table " + table} // an empty one is equal as well
		for rows.Next() {
			var row string
			if err := rows.Scan(&row); err != nil {
				t.Fatalf("read %s: %v", table, err)
			}
			row = columnOfBytes.ReplaceAllStringFunc(row, describeBytes)
			w["table "+table] = append(w["table "+table], withoutChance(row))
		}
		slices.Sort(w["table "+table])
	}
}

// columnOfBytes is how to_jsonb writes one.
var columnOfBytes = regexp.MustCompile(`\\\\x[0-9a-f]+`)

// describeBytes returns text as it is, and the length of anything else.
func describeBytes(column string) string {
	data, err := hex.DecodeString(strings.TrimPrefix(column, `\\x`))
	if err != nil || !utf8.Valid(data) {
		return fmt.Sprintf("BYTES-%d", len(data))
	}
	return string(data)
}

// chance is what differs between two runs of the same actions. Of what is
// sealed the length stays: it must not depend on what is in it. Times are
// written with as many digits as they need, so that sizes are compared by what
// remains, and not by the header Content-Length.
var chance = []struct {
	pattern *regexp.Regexp
	replace func(string) string
}{
	{regexp.MustCompile(`v\d\.k1\.[A-Za-z0-9_-]+`), func(s string) string { return fmt.Sprintf("SEALED-%d", len(s)) }},
	{regexp.MustCompile(`"median_seconds":\d+`), constant("MEDIAN")},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), constant("UUID")},
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}\b`), constant("REFERENCE")}, // made of the report's id
	{regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]`), constant("TRACE")},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), constant("HEX")},
	{regexp.MustCompile(`\b[0-9a-f]{8}\.\d`), func(s string) string { return "EPOCH" + s[8:] }},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`), constant("TIME")},
	{regexp.MustCompile(`Content-Length: \d+\r\n`), constant("")},
	{regexp.MustCompile(`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]+ GMT`), constant("DATE")},
	{regexp.MustCompile(`("(timestamp|at|duration_ms|p95_ms|seq|processed_at)": ?)\d+(\.\d+)?`), constant(`"NUMBER"`)},
	{regexp.MustCompile(`v1,[A-Za-z0-9+/]{43}=`), constant("SIGNATURE")},
	{regexp.MustCompile(`W/"[A-Za-z0-9_-]{16}"`), constant("FINGERPRINT")}, // of ids and versions
	{regexp.MustCompile(`(?i)"webhook-timestamp":\[?"\d+`), constant("SECONDS")},
	// Which notifications share a reader can be seen in the database that knows
	// the readers; see docs/decisions.
	{regexp.MustCompile(`"(stream_id|reader)": \d+`), constant(`"STREAM"`)},
	{regexp.MustCompile(`"session_lock": -?\d+`), constant(`"LOCK"`)},
	{regexp.MustCompile(`"(owner|lease_until)": ("UUID"|"TIME"|null)`), constant(`"LEASE"`)},
	{regexp.MustCompile(`"epoch": [0-9]+, "LEASE"`), constant(`"LEASE"`)}, // a busy machine may lose a lease
	{regexp.MustCompile(`"origin": "[^"]*"`), constant(`"DATABASE"`)},
	// The shard and the order in the table depend on the report's random id.
	{regexp.MustCompile(`"(shard|id|delivery_id)": ?\d+`), constant(`"PLACE"`)},
	{regexp.MustCompile(`"(upstream_|upstream_connect_)?seconds":"?[\d.]+"?`), constant(`"SECONDS"`)},
	{regexp.MustCompile(`\\+x[0-9a-f]{64}`), constant("DIGEST")}, // keyed, and of the upload's random id
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), constant("ADDRESS")},
}

func constant(s string) func(string) string { return func(string) string { return s } }

func withoutChance(s string) string {
	for _, c := range chance {
		s = c.pattern.ReplaceAllStringFunc(s, c.replace)
	}
	return s
}
