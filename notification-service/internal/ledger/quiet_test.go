package ledger

import (
	"testing"
	"time"
)

func TestQuietHours(t *testing.T) {
	t.Parallel()
	at := func(hour, minute int) time.Time { return time.Date(2026, 3, 1, hour, minute, 0, 0, time.UTC) }
	night, noon := &Quiet{From: 22 * 60, To: 6*60 + 30}, &Quiet{From: 12 * 60, To: 13 * 60}
	for _, tt := range []struct {
		quiet *Quiet
		now   time.Time
		want  time.Duration
	}{
		{nil, at(3, 0), 0},
		{night, at(21, 59), 0},
		{night, at(22, 0), 8*time.Hour + 30*time.Minute},
		{night, at(0, 0), 6*time.Hour + 30*time.Minute},
		{night, at(6, 29), time.Minute},
		{night, at(6, 29).Add(40 * time.Second), 20 * time.Second},
		{night, at(6, 30), 0},
		{noon, at(12, 15), 45 * time.Minute},
		{noon, at(13, 0), 0},
		{noon, at(0, 0), 0},
	} {
		if got := tt.quiet.Until(tt.now); got != tt.want {
			t.Errorf("%+v at %s: quiet for %s, want %s", tt.quiet, tt.now.Format(time.TimeOnly), got, tt.want)
		}
	}
}
