package deadletter

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// Whatever the spelling, an operator sees nobody who is named.
func TestMaskNamesNobody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"reporter_id":"canary","voter_id":"canary","nested":[{"reporter_name":"canary"}]}`,
		`{"reporter\u005fid":"canary"}`,
		`{"reporter_id":42424242}`,
		`{"Voter_ID":"canary"}`, // which Go decodes all the same
		`{"reporter_\u212ad":"x","voter_id":"canary"}`,
		`{"REPORTER_NAME":{"first":"canary"}}`,
		`{"voterId":"canary","reporter-id":"canary"}`,
		`{"inner":"{\"voter_id\":\"canary\"}"}`,
		`{"inner":"[{\"inner\":\"{\\\"Reporter_Id\\\":\\\"canary\\\"}\"}]"}`,
		`{"inner":"{\"voter_id\":\"canary\""}`, // broken inside
		`"{\"voter_id\":\"canary\"}"`,
		`["canary"]`,
		`{"reporter_id": "canary", "broken`,
		`{"reporter_name":"can\"canary","x":`,
		`{"voter_id":"canary`,
		`{"reporter_id":42424242,`,
		`{"reporter\u005fid": "canary",`,
		`{'voter_id': 'canary'}`,
		`{voter_id: canary}`,
		`reporter_id=canary&voter_id=42424242`,
		`{"voter_id":"canary"} {"voter_id":"canary"}`,
		"\xff\xfevoter canary",
	} {
		shown := string(MaskBody([]byte(body)))
		if strings.Contains(shown, "canary") || strings.Contains(shown, "42424242") || !json.Valid([]byte(shown)) {
			t.Errorf("%s is shown as %s", body, shown)
		}
	}
}

// Values that name nobody are shown: an operator has to find the fault.
func TestMaskShowsTheRest(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"report_title":"[Pothole","new_score":12345678901234567890,"note":"see {3}","voter_id":"u"}`: `{"new_score":12345678901234567890,"note":"see {3}","report_title":"[Pothole","voter_id":"•••"}`,
		`{"report_title": "Pothole", "vote_type": "upvote", "broken`:                                   `"{\"report_title\": \"•••\", \"vote_type\": \"upvote\", \"•••"`,
	} {
		if shown := string(MaskBody([]byte(body))); shown != want {
			t.Errorf("%s is shown as %s, want %s", body, shown, want)
		}
	}
}

func TestMaskHeadersShowsOnlyKnownOnes(t *testing.T) {
	t.Parallel()
	shown := string(MaskHeaders(json.RawMessage(`{"x-recipient":"v1.k1.canary","x-user":"canary","X-Retries":"canary",
		"x-retries":2,"x-death":[{"queue":"q"}],"x-first-death-queue":"q","traceparent":"00-1"}`)))
	want := `{"X-Retries":"•••","traceparent":"00-1","x-death":[{"queue":"q"}],"x-first-death-queue":"q","x-recipient":"sealed","x-retries":2,"x-user":"•••"}`
	if shown != want {
		t.Errorf("headers are shown as %s, want %s", shown, want)
	}
}

// An editor who leaves a masked value changes nothing of it, and cannot make a
// value of the mask.
func TestEditPutsBackWhatWasMasked(t *testing.T) {
	t.Parallel()
	const original = `{"report_id":"018f2f6e-7a3b-7c11-9d2a-0123456789ab","report_title":"","Voter_ID":"carol","vote_type":"upvote",` +
		`"new_score":1,"timestamp":1,"odd":{"reporter_id":"dora","list":["{\"voter_id\":\"erin\"}"]}}`
	e := &Entry{Type: "report.vote.received", Body: []byte(original)}
	shown := string(MaskBody(e.Body))
	edit, err := NewEdit(e, json.RawMessage(strings.Replace(shown, `"report_title":""`, `"report_title":"Pothole"`, 1)))
	if err != nil {
		t.Fatalf("NewEdit of %s: %v", shown, err)
	}
	for _, name := range []string{`"Voter_ID":"carol"`, `"reporter_id":"dora"`, `{\"voter_id\":\"erin\"}`} {
		if !strings.Contains(string(edit.Body), name) {
			t.Errorf("the edited body %s has lost %s", edit.Body, name)
		}
	}
	if len(edit.Changes) != 1 || edit.Changes[0].Field != "report_title" {
		t.Errorf("changes %v, want the title alone", edit.Changes)
	}
	moved := strings.Replace(shown, `"report_title":""`, `"report_title":"•••"`, 1)
	if _, err := NewEdit(e, json.RawMessage(moved)); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a mask as a title: %v, want an error of kind invalid", err)
	}
}

// A stranger's message is masked, edited and put back at a cost in proportion to its
// length, however deep it is, and however often it is a text in a text.
func TestMaskingIsInProportion(t *testing.T) { // not parallel: it counts the process's allocations
	const size, perByte = 64 << 10, 400
	texts := strings.Repeat("<", size/2)
	for range 13 {
		encoded, err := json.Marshal(map[string]string{"a": strings.ReplaceAll(texts, `\u003c`, "<")})
		if err != nil {
			t.Fatal(err)
		}
		texts = strings.ReplaceAll(string(encoded), `\u003c`, "<")
	}
	deep := func(innermost string) string {
		return `{"a":` + strings.Repeat("[", 9000) + innermost + strings.Repeat("]", 9000) + `}`
	}
	for _, tt := range []struct{ name, body, edited string }{
		{"texts in texts", texts, texts},
		{"lists in lists", deep(`"old"`), deep(`"new"`)},
		{"objects in objects", strings.Repeat(`{"a":`, 9000) + `"old"` + strings.Repeat("}", 9000), strings.Repeat(`{"a":`, 9000) + `"new"` + strings.Repeat("}", 9000)},
		{"named people in one another", strings.Repeat(`{"voter_id":`, 5000) + `"old"` + strings.Repeat("}", 5000), strings.Repeat(`{"voter_id":`, 5000) + `"new"` + strings.Repeat("}", 5000)},
		{"no JSON", strings.Repeat(`<"`, size/2), `{"a":"` + strings.Repeat("<", size) + `"}`},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = NewEdit(&Entry{Type: "report.vote.received", Body: []byte(tt.body)}, json.RawMessage(tt.edited)) // which breaks the contract
		MaskBody([]byte(tt.body))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(perByte*(len(tt.body)+len(tt.edited))) {
			t.Errorf("%s: allocates %d kB for %d", tt.name, got>>10, len(tt.body)>>10)
		}
	}
}
