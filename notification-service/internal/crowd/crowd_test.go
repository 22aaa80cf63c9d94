package crowd_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/platform/event"
)

// One person more changes what is shown for one offset in Size, wherever the
// figure stands; fewer than Size people are never shown, nor more than there are.
func TestOneMoreRarelyShows(t *testing.T) {
	t.Parallel()
	for n := range 10 * crowd.Size {
		changes := 0
		for offset := range crowd.Size {
			shown := crowd.Shown(n, offset)
			if shown > n || shown <= n-2*crowd.Size || shown%crowd.Size != 0 || n < crowd.Size && shown != 0 {
				t.Fatalf("%d people with offset %d are shown as %d", n, offset, shown)
			}
			if crowd.Shown(n+1, offset) != shown {
				changes++
			}
		}
		if changes > 1 {
			t.Errorf("one more than %d people shows with %d of %d offsets", n, changes, crowd.Size)
		}
	}
}

// Offsets are spread evenly, the same for everybody with the key, and others for
// another figure, another period and another key.
func TestOffsets(t *testing.T) {
	t.Parallel()
	ring := func() *event.Keyring {
		ring, err := event.ParseKeyring(event.NewKey("k1"))
		if err != nil {
			t.Fatal(err)
		}
		return ring
	}
	one := ring()
	a, again, b := crowd.NewRounding(one), crowd.NewRounding(one), crowd.NewRounding(ring())
	const hours = 20_000
	var seen [crowd.Size]int
	equal := map[string]int{}
	for hour := range hours {
		at := fmt.Sprint(hour)
		offset := a.Offset("gmail.com", at)
		seen[offset]++
		if again.Offset("gmail.com", at) != offset {
			t.Fatal("two replicas round in different ways")
		}
		for name, other := range map[string]int{
			"the next hour": a.Offset("gmail.com", fmt.Sprint(hour+1)), "another host": a.Offset("others", at), "another key": b.Offset("gmail.com", at),
		} {
			if other == offset {
				equal[name]++
			}
		}
	}
	for offset, n := range seen {
		if n < hours/crowd.Size*8/10 || n > hours/crowd.Size*12/10 {
			t.Errorf("offset %d comes %d times in %d", offset, n, hours)
		}
	}
	for name, n := range equal {
		if n > hours/crowd.Size*12/10 {
			t.Errorf("%s has the same offset %d times in %d", name, n, hours)
		}
	}
}

// A gate does not open for one person, however many events they have, and opens
// after a number of people that nobody can know.
func TestGate(t *testing.T) {
	t.Parallel()
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mails_total", Help: "Mails."}, []string{"class"})
	vec.WithLabelValues("full") // 0 is a value to compare with
	reg := prometheus.NewRegistry()
	reg.MustRegister(vec)
	counter := crowd.NewCounter(vec)
	counted := func() int {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return int(families[0].GetMetric()[0].GetCounter().GetValue())
	}
	for range 1000 {
		counter.Add("ann", "full")
	}
	if got := counted(); got != 0 {
		t.Fatalf("one person is counted %v times", got)
	}
	for i := range 2*crowd.Size - 2 {
		counter.Add(fmt.Sprint(i), "full")
	}
	if got := counted(); got < 1000 || got%crowd.Size != 0 {
		t.Errorf("a crowd with more than 1,000 events is counted as %v", got)
	}
	var gate crowd.Gate
	const rounds = 10_000
	var opened [2 * crowd.Size]int
	told := 0
	for round := range rounds {
		for people := 1; ; people++ {
			if n := gate.Add("policy", fmt.Sprint(round, " ", people)); n > 0 {
				opened[people]++
				told += n
				break
			}
		}
	}
	total := 0
	for people, n := range opened {
		total += people * n
		if people < crowd.Size && n > 0 || people >= crowd.Size && n > rounds/crowd.Size*13/10 {
			t.Errorf("the gate opened for %d people in %d of %d rounds", people, n, rounds)
		}
	}
	if told > total || told <= total-crowd.Size {
		t.Errorf("%d of %d events are shown", told, total)
	}
}
