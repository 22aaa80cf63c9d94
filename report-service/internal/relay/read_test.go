package relay

import (
	"errors"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A read begins at once after a full one, soon after a wake-up, and otherwise
// ever more rarely.
func TestReadSchedule(t *testing.T) {
	t.Parallel()
	cfg, now := Defaults(), time.Unix(1000, 0)
	s := readSchedule{pollMin: cfg.PollMin, pollMax: cfg.PollMax, poll: cfg.PollMin, next: now}
	if !s.due().Equal(now) {
		t.Errorf("the first read is due at %v, want now", s.due())
	}
	s.began = now
	s.finished(readResult{rows: []*row{{}}, fullShards: 4}, now)
	if s.due().After(now) || s.perShard != readSize/4 {
		t.Errorf("after a full read: due in %v, %d of each shard; want at once, %d", s.due().Sub(now), s.perShard, readSize/4)
	}
	s.finished(readResult{rows: []*row{{}}}, now)
	if wait := s.due().Sub(now); wait < cfg.PollMin*8/10 || wait > cfg.PollMin*12/10 {
		t.Errorf("after a read that found rows: due in %v, want about %v", wait, cfg.PollMin)
	}
	for range 10 {
		s.finished(readResult{}, now)
	}
	if wait := s.due().Sub(now); wait < cfg.PollMax*8/10 || wait > cfg.PollMax*12/10 {
		t.Errorf("after reads that found nothing: due in %v, want about %v", wait, cfg.PollMax)
	}
	s.finished(readResult{err: errors.New("no database")}, now)
	if wait := s.due().Sub(now); wait != cfg.PollMax {
		t.Errorf("after a failed read: due in %v, want %v", wait, cfg.PollMax)
	}
	s.triggered = true
	if wait := s.due().Sub(now); wait != readGap {
		t.Errorf("after a wake-up: due in %v, want %v", wait, readGap)
	}
}

// Reads that take long are further apart, up to a limit.
func TestReadsMakeWay(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: readGap, 5 * time.Millisecond: 15 * time.Millisecond, time.Minute: maxReadGap,
	} {
		s := readSchedule{began: began}
		s.finished(readResult{}, began.Add(took))
		if s.gap != want {
			t.Errorf("after a read of %v: %v until the next, want %v", took, s.gap, want)
		}
	}
}

// A replica whose shards are all being released waits for a change, even if a
// wake-up came before.
func TestNoReadWithoutShards(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &session{cfg: Defaults(), leases: shards.NewLeases(), schedule: readSchedule{began: now.Add(-time.Second), triggered: true}}
	s.startRead(t.Context(), now)
	if wait := s.schedule.due().Sub(now); s.reading || wait != s.cfg.PollMax {
		t.Errorf("reading %v, due in %v; want no read before %v", s.reading, wait, s.cfg.PollMax)
	}
}
