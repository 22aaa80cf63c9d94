package wording

import "testing"

func TestPreferred(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]Language{
		"": English, "id": Indonesian, "in-ID,in;q=0.9,en;q=0.8": Indonesian, "ID-id": Indonesian, "fr, id;q=0.5": Indonesian,
		"en-US,en;q=0.9,id;q=0.8": English, "fr": English, "*": English,
	} {
		if got := Preferred(header); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// Both languages have the same words.
func TestWordsAreComplete(t *testing.T) {
	t.Parallel()
	for _, entry := range words()[English].Templates() {
		if words()[Indonesian].Lookup(entry.Name()) == nil && entry.Name() != string(English) {
			t.Errorf("no %q in Indonesian", entry.Name())
		}
	}
	if a, b := len(words()[English].Templates()), len(words()[Indonesian].Templates()); a != b {
		t.Errorf("%d words in English, %d in Indonesian", a, b)
	}
}
