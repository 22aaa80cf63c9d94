package relay

import (
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/config"
)

// The default heartbeat makes the broker hang up on a paused replica before
// its lease can be another's.
func TestHeartbeatFitsTheMargin(t *testing.T) {
	t.Parallel()
	c := Defaults()
	if c.Lease > 15*time.Second || 3*c.heartbeat() >= c.margin() {
		t.Errorf("lease %v, margin %v, heartbeat %v: want a lease of at most 15 s and three heartbeats within the margin",
			c.Lease, c.margin(), c.heartbeat())
	}
}

func TestValidateNamesTheVariable(t *testing.T) {
	t.Parallel()
	err := config.NewError(Config{Lease: time.Second}.Validate())
	for _, name := range []string{"RELAY_LEASE", "RELAY_RETENTION"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want it to name %s", err, name)
		}
	}
}
