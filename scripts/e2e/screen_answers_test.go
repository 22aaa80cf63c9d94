package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/openapitest"
)

var updateAnswers = flag.Bool("update-answers", false, "write the answers that the page's tests show in its screens")

// The answers that the page reads fit the documents in an empty city, in one with one of
// each thing, and in a full one. The tests of the page's screens are fed with them:
// -update-answers writes them.
func TestAnswersForScreens(t *testing.T) {
	t.Parallel()
	c := prepareStack(t)
	c.switchCommentsOn()
	c.switchGuestsOn()
	c.start()
	c.startPhotoWorker()
	who := map[string]*client.Client{
		"resident": c.signIn("Ana", "resident"), "official": c.signIn("Olga", "official"), "operator": c.signIn("Oskar", "operator"),
	}
	c.recordAnswers("empty", who)
	c.fillScreens(who)
	c.recordAnswers("one", who)
	for n := range 40 {
		report := file(t, who["resident"], fmt.Sprintf("Report %d", n))
		if n%4 == 0 {
			move(t, who["official"], report, "in_progress", "Seen")
		}
	}
	c.recordAnswers("full", who)
}

// fillScreens does one of each thing that a screen shows.
func (c *stack) fillScreens(who map[string]*client.Client) {
	c.t.Helper()
	ana, olga, oskar := who["resident"], who["official"], who["operator"]
	do := func(user *client.Client, method, path, body string, header ...string) {
		c.t.Helper()
		if err := user.Do(c.t.Context(), method, path, json.RawMessage(body), nil, header...); err != nil {
			c.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	c.setAreas(oskar)
	c.setAssets(oskar)
	do(oskar, http.MethodPut, "/reports/departments", `{"departments":[{"id":1,"name":"Lights","category_ids":[2]}]}`)
	do(oskar, http.MethodPut, "/reports/calendar",
		`{"zone":"Asia/Jakarta","shifts":[{"day":"monday","from":"08:00","to":"16:00"}],"holidays":["2030-01-01"],"targets":[{"category_id":2,"hours":8}]}`)
	do(olga, http.MethodPut, "/reports/templates", `{"templates":[{"id":1,"title":"Done","text":"Repaired.","status":"resolved"}]}`)
	do(olga, http.MethodPut, "/reports/views", `{"views":[{"name":"Mine","filters":"status=pending"}]}`)
	do(oskar, http.MethodPut, "/admin/appearance", `{"colour":"#8a1538","words":[{"language":"en","greeting":"Dear neighbours,","signature":"Your city"}]}`, "If-Match", `"0"`)
	first, second := file(c.t, ana, "Dark crossing"), file(c.t, ana, "Dark crossing, too")
	path := "/reports/" + first.ID.String()
	c.upload(ana, first, smallPicture(c.t))
	vote(c.t, c.signIn("Ben", "resident"), first, "upvote")
	do(ana, http.MethodPost, path+"/comments", `{"text":"Still dark.","anonymous":false}`, "Idempotency-Key", uuid.NewString())
	askReporter(c.t, olga, first, "Which lamp?")
	do(olga, http.MethodPut, "/reports/"+second.ID.String()+"/duplicate-of", `{"original":"`+first.ID.String()+`"}`)
	move(c.t, olga, first, "in_progress", "A crew is on its way.")
	c.fillConsole(oskar, ana)
	msg := c.message(event.VoteReceivedKey, uuid.New(), "ana", `{"no": "vote"}`)
	c.publish(c.channel(), event.VoteReceivedKey, msg)
	c.awaitDeadLetter("queue.vote_received", msg.MessageId)
	do(oskar, http.MethodPost, "/admin/dlq/replays", `{"selection":{"queue":"queue.vote_received"}}`)
}

// recordAnswers reads the answers of both services.
func (c *stack) recordAnswers(city string, who map[string]*client.Client) {
	c.t.Helper()
	answers := c.readAnswers(who)
	if len(answers) < 40 {
		c.t.Errorf("the %s city answers %d operations, want 40 or more", city, len(answers))
	}
	if *updateAnswers {
		writeRecording(c.t, answers, "testing", "answers", city+".json")
	}
}

// writeRecording writes what was recorded into a file of the page's sources.
func writeRecording(t *testing.T, recording any, name ...string) {
	t.Helper()
	file := filepath.Join(append([]string{root(), "notification-service", "internal", "web", "app", "src"}, name...)...)
	if err := os.WriteFile(file, append(must(json.MarshalIndent(recording, "", " ")), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readAnswers reads each operation of both services that answers with JSON, as the first
// of the operator, the official and the resident who may, and holds the answers to the
// documents.
func (c *stack) readAnswers(who map[string]*client.Client) map[string]json.RawMessage {
	c.t.Helper()
	values := (&fuzzer{stack: c}).pathValues()
	for _, table := range []string{"dead_letters", "deliveries", "replays", "webhook_endpoints"} {
		values["id"] = append(values["id"], c.firstIDs(table)...)
	}
	values["queue"] = []string{"queue.vote_received"}
	answers := map[string]json.RawMessage{}
	for service, p := range map[string]*process{"report-service": c.report, "notification-service": c.notification} {
		contract := openapitest.New(filepath.Join(root(), "docs", "openapi", service+".yaml"))
		doc := c.describe(p)
		for _, op := range doc.operations(values) {
			template, reads := strings.CutPrefix(op.template, "GET ")
			if !reads || answers[template] != nil || strings.HasSuffix(template, "/stream") || template == "/openapi.json" {
				continue
			}
			described := doc.object(doc.object(doc.object(doc["paths"])[template])["get"])
			roles, _ := described["x-roles"].([]any)
			for _, role := range []string{"operator", "official", "resident"} {
				if (role == "resident" || slices.Contains(roles, any(role))) && answers[template] == nil {
					answers[template] = c.answer(contract, p.url()+op.path, who[role].Token())
				}
			}
			if answers[template] == nil {
				delete(answers, template)
			}
		}
	}
	return answers
}

// answer returns what address answers, nil unless that is JSON and no problem.
func (c *stack) answer(contract *openapitest.Document, address, token string) json.RawMessage {
	c.t.Helper()
	req := must(http.NewRequestWithContext(c.t.Context(), http.MethodGet, address, http.NoBody))
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body := must(io.ReadAll(res.Body))
	if res.StatusCode != http.StatusOK || !json.Valid(body) {
		return nil
	}
	contract.Check(c.t, req, res, body)
	return body
}

// firstIDs returns the first two ids of a table of notification-service.
func (c *stack) firstIDs(table string) (ids []string) {
	c.t.Helper()
	err := c.notificationDB.QueryRow(c.t.Context(), `select coalesce(array_agg(id), '{}') from (select id::text from `+table+` order by id limit 2) as t`).Scan(&ids)
	if err != nil {
		c.t.Fatal(err)
	}
	return ids
}
