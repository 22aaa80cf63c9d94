package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
)

// A queue as the management API lists it.
type queue struct {
	Name      string `json:"name"`
	Messages  int    `json:"messages"`
	Exclusive bool   `json:"exclusive"`
}

// vhost returns the city's virtual host, as a path of the management API has it.
func (c *city) vhost() string {
	u := must(url.Parse(c.brokerURL))
	if u.Path == "" || u.Path == "/" {
		return "%2F"
	}
	return url.PathEscape(strings.TrimPrefix(u.Path, "/"))
}

// manage asks the management API; a %s in path stands for the virtual host.
func (c *city) manage(method, path string, body any) []byte {
	c.t.Helper()
	return rabbittest.Manage(c.t, c.managementURL, method, strings.ReplaceAll(path, "%s", c.vhost()), body)
}

// queues lists the city's queues.
func (c *city) queues() []queue {
	c.t.Helper()
	var all []queue
	// Statistics lag; without them the counts are those of this moment.
	answer := c.manage(http.MethodGet, "/api/queues/%s?disable_stats=true&enable_queue_totals=true", nil)
	if err := json.Unmarshal(answer, &all); err != nil {
		c.t.Fatalf("list queues: %v", err)
	}
	return all
}
