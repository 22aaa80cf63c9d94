package event_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
)

func keyring(t *testing.T, keys ...string) *event.Keyring {
	t.Helper()
	k, err := event.ParseKeyring(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealedOpensForItsReportAlone(t *testing.T) {
	t.Parallel()
	k := keyring(t, event.NewKey("k1"))
	sealed := k.Seal(id, "user-1")
	if strings.Contains(sealed, "user-1") {
		t.Fatalf("sealed recipient %q shows the user", sealed)
	}
	if got, err := k.Open(id, sealed); err != nil || got != "user-1" {
		t.Errorf("Open: %q, %v; want user-1", got, err)
	}
	if got, err := k.Open(uuid.New(), sealed); !errors.Is(err, event.ErrSealed) {
		t.Errorf("Open for another report: %q, %v; want ErrSealed", got, err)
	}
	if k.Seal(id, "user-1") == sealed {
		t.Error("sealed twice to the same bytes: equal recipients could be told")
	}
}

// The length of what is sealed must not tell whose it is.
func TestSealedAreEquallyLong(t *testing.T) {
	t.Parallel()
	k := keyring(t, event.NewKey("k1"))
	ids := []string{"", "u", "user-0001", "federated:tenant-7:benedictus.maximilian@city.example.org", strings.Repeat("x", 255), "u\x00\x00"}
	for _, userID := range ids {
		sealed := k.Seal(id, userID)
		if want := len(k.Seal(id, "")); len(sealed) != want {
			t.Errorf("an id of %d bytes is sealed to %d characters, another to %d", len(userID), len(sealed), want)
		}
		if got, err := k.Open(id, sealed); err != nil || got != userID {
			t.Errorf("Open: %q, %v; want %q", got, err, userID)
		}
	}
	long := strings.Repeat("x", 256) // none of ours, and must not be cut
	if got, err := k.Open(id, k.Seal(id, long)); err != nil || got != long {
		t.Errorf("Open: %d bytes, %v; want %d", len(got), err, len(long))
	}
	if a, b := k.SealPadded(id, "epoch.1.user:u", 320), k.SealPadded(id, "epoch.1000000.user:"+strings.Repeat("u", 255), 320); len(a) != len(b) {
		t.Errorf("announcements are sealed to %d and %d characters", len(a), len(b))
	}
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	older, newer := event.NewKey("k1"), event.NewKey("k2")
	sealed := keyring(t, older).Seal(id, "u")

	both := keyring(t, newer, older)
	if got, err := both.Open(id, sealed); err != nil || got != "u" {
		t.Errorf("Open with both keys: %q, %v; want u", got, err)
	}
	if fresh := both.Seal(id, "u"); !strings.HasPrefix(fresh, "v2.k2.") {
		t.Errorf("sealed as %q, want the first key", fresh)
	}
	if _, err := keyring(t, newer).Open(id, sealed); !errors.Is(err, event.ErrSealed) {
		t.Errorf("Open without the old key: %v; want ErrSealed", err)
	}
}

func TestDerivedSecrets(t *testing.T) {
	t.Parallel()
	older, newer := event.NewKey("k1"), event.NewKey("k2")
	both := keyring(t, newer, older).Derive("a")
	if len(both) != 2 || len(both[0]) != 32 || bytes.Equal(both[0], both[1]) {
		t.Fatalf("derived %x, want a secret of 32 bytes for each key", both)
	}
	if again := keyring(t, older).Derive("a"); !bytes.Equal(again[0], both[1]) {
		t.Errorf("the same key and purpose give %x and %x", again[0], both[1])
	}
	if other := keyring(t, newer).Derive("b"); bytes.Equal(other[0], both[0]) || strings.Contains(newer, base64.StdEncoding.EncodeToString(both[0])) {
		t.Errorf("another purpose gives %x, after %x", other[0], both[0])
	}
}

func TestKeyringErrorsSayWhatIsRightAndNoKey(t *testing.T) {
	t.Parallel()
	good := event.NewKey("k1")
	for _, bad := range []string{"", "k1", "k1:short", "k 1:" + good[3:], good + "," + good, good + ",k2:!!!"} {
		_, err := event.ParseKeyring(bad)
		if err == nil {
			t.Errorf("ParseKeyring(%q) succeeded", bad)
		} else if strings.Contains(err.Error(), good[3:]) {
			t.Errorf("ParseKeyring(%q): %v shows a key", bad, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	k, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(k.Seal(id, "u"))
	f.Add("v1.k1.")
	f.Add("v2.k1.")
	f.Add("v1..")
	f.Fuzz(func(t *testing.T, sealed string) {
		if got, err := k.Open(id, sealed); err == nil && got != "u" {
			t.Errorf("Open(%q) = %q: it was never sealed", sealed, got)
		}
	})
}
