package retention_test

import (
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/retention"
)

func TestPeriod(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"never": 0, "0": 0, "1d": day, "365d": 365 * day, "24h": day, "1000h30m": 1000*time.Hour + 30*time.Minute,
	} {
		p := retention.Period(1)
		if err := p.UnmarshalText([]byte(text)); err != nil || time.Duration(p) != want {
			t.Errorf("%q is %v (error %v), want %v", text, time.Duration(p), err, want)
		}
	}
	for _, text := range []string{"", "0d", "23h", "-1d", "1", "365 d", "d", "99999999d", "ever"} {
		var p retention.Period
		if err := p.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v, want an error", text, time.Duration(p))
		}
	}
}
