package erasure_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
)

func ann(id string) bool { return id == "ann-1" }

func TestScrub(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, want string }{
		{"a voter", `{"report_version":9007199254740993,"voter_id":"ann-1"}`, `{"report_version":9007199254740993,"voter_id":"erased"}`},
		{"a reporter, with the name", `{"reporter_id":"ann-1","reporter_name":"Ann","report_title":"Ann"}`, `{"report_title":"Ann","reporter_id":"erased"}`},
		{"another spelling", `{"Reporter_Name":"Ann","reporterId":"ann-1"}`, `{"reporterId":"erased"}`},
		{"deeper", `{"a":[{"b":"ann-1"}],"c":"{\"voter_id\":\"ann-1\"}"}`, `{"a":[{"b":"erased"}],"c":"{\"voter_id\":\"erased\"}"}`},
		{"the name of another", `{"voter_id":"ann-1","reporter_id":"bob","reporter_name":"Bob"}`, `{"reporter_id":"bob","reporter_name":"Bob","voter_id":"erased"}`},
		{"nobody", `{"voter_id": "ann-10"}`, `{"voter_id": "ann-10"}`},
		{"part of a text", `{"report_title":"for ann-1"}`, `{"report_title":"for ann-1"}`},
		{"no JSON", `{"voter_id":"ann-1", 'x': 'ann-1', broken`, `{"voter_id":"erased", 'x': 'erased', broken`},
		{"no JSON, a long text", `{"n":"` + strings.Repeat("x", 300) + `","voter_id":"ann-1", broken`, `{"n":"` + strings.Repeat("x", 300) + `","voter_id":"erased", broken`},
		{"no JSON, a quote too many", `{"voter_id":"ann-1"", "x":"ann-1"`, `{"voter_id":"erased"", "x":"erased"`},
		{"no JSON, JSON in a text", `{"c":"{\"voter_id\":\"ann-1\"}", broken`, `{"c":"{\"voter_id\":\"erased\"}", broken`},
		{"JSON and more", `{"voter_id":"bob"} {"voter_id":"ann-1"}`, `{"voter_id":"bob"} {"voter_id":"erased"}`},
		{"more behind what changes", `{"voter_id":"ann-1"} and more`, `{"voter_id":"erased"} and more`},
		{"empty", ``, ``},
	} {
		got, changed := erasure.Scrub([]byte(tt.body), ann)
		if string(got) != tt.want || changed != (tt.body != tt.want) {
			t.Errorf("%s: %s (changed: %t), want %s", tt.name, got, changed, tt.want)
		}
	}
}

// JSON that is a text in a text costs no more than its length allows for, however
// often, and names nobody who was erased.
func TestScrubIsInProportion(t *testing.T) { // not parallel: it counts the process's allocations
	const size, perByte = 64 << 10, 100
	body := `{"a":"` + strings.Repeat("<", size/2) + `","voter_id":"ann-1"}`
	for range 12 {
		body = `{"a":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(body) + `"}`
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	scrubbed, changed := erasure.Scrub([]byte(body), ann)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(perByte*len(body)) {
		t.Errorf("allocates %d kB for %d", got>>10, len(body)>>10)
	}
	if !changed || strings.Contains(string(scrubbed), "ann-1") || !strings.Contains(string(scrubbed), erasure.Someone) {
		t.Errorf("changed %t, to %.200s", changed, scrubbed)
	}
}

func TestReseal(t *testing.T) {
	t.Parallel()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	report := uuid.New()
	sealed, changed := erasure.Reseal(keys, report, keys.Seal(report, "ann-1"), ann)
	if id, err := keys.Open(report, sealed); !changed || err != nil || id != "" {
		t.Errorf("the recipient is %q (changed: %t, error %v), want nobody", id, changed, err)
	}
	for name, other := range map[string]string{"another": keys.Seal(report, "bob"), "of another report": keys.Seal(uuid.New(), "ann-1"), "nothing": ""} {
		if got, changed := erasure.Reseal(keys, report, other, ann); changed || got != other {
			t.Errorf("%s: changed", name)
		}
	}
}

func TestMentioned(t *testing.T) {
	t.Parallel()
	for id, texts := range map[string]map[string]bool{
		"1":       {"user 1 asked": true, "1": true, "at 10:11": false, "(1)": true},
		"a.b|c":   {"for a.b|c, twice": true, "axb": false, "c": false},
		`x\y`:     {`x\y`: true, "xy": false},
		"auth0|a": {"auth0|a": true, "auth0": false},
	} {
		// Go has no classes of PostgreSQL's that this expression uses otherwise.
		pattern := regexp.MustCompile(erasure.Mentioned(id))
		for text, want := range texts {
			if got := pattern.MatchString(text); got != want {
				t.Errorf("%q is mentioned in %q: %t, want %t", id, text, got, want)
			}
		}
	}
}
