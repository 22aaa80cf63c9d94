package geocoder_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/geocoder"
)

// One address cannot take the geocoder from the others; a network of IPv6 is one.
func TestBudget(t *testing.T) {
	t.Parallel()
	var b geocoder.Budget
	take := func(address string) (n int) {
		for range 100 {
			if b.Allow(address) {
				n++
			}
		}
		return n
	}
	for _, tt := range []struct {
		address string
		other   bool // than those before
	}{
		{"192.0.2.1", true}, {"192.0.2.1", false}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8::5", true}, {"2001:db8:0:0:7::8", false}, {"2001:db8:0:1::5", true}, {"unknown", true}, {"", false},
	} {
		if n := take(tt.address); (n >= 20) != tt.other || n == 100 {
			t.Errorf("%s asks %d times, want it to be another: %t", tt.address, n, tt.other)
		}
	}
}
