package operators

import (
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// HealthOperations are those on what m has read. They need no database.
func HealthOperations(m *monitor.Monitor) openapi.Operations {
	return openapi.Operations{"readHealth": timed(func(w http.ResponseWriter, _ *http.Request) error {
		return service.Encode(w, http.StatusOK, health{At: time.Now(), Parts: service.Each(m.Statuses(), healthPartOf)})
	})}
}

type health struct {
	At    time.Time    `json:"at"`
	Parts []healthPart `json:"parts"`
}

type healthPart struct {
	Name   string        `json:"name"`
	State  monitor.State `json:"state"`
	Cause  monitor.Cause `json:"cause,omitempty"`
	Names  []string      `json:"names"`
	Count  int64         `json:"count"`
	Since  time.Time     `json:"since"`
	ReadAt time.Time     `json:"read_at,omitzero"`
}

func healthPartOf(s monitor.Status) healthPart {
	return healthPart{
		Name: s.Name, State: s.State, Cause: s.Cause, Names: service.Each(s.Names, func(name string) string { return name }),
		Count: s.Count, Since: s.Since, ReadAt: s.ReadAt,
	}
}
