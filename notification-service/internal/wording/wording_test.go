package wording

import "testing"

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
