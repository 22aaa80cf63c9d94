package e2e

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
)

// vhost returns the name of the city's virtual host.
func (c *city) vhost() string {
	name := strings.TrimPrefix(must(url.Parse(c.brokerURL)).Path, "/")
	if name == "" {
		return "/"
	}
	return name
}

// queues lists the city's queues.
func (c *city) queues() []rabbithole.QueueInfo {
	c.t.Helper()
	// Statistics lag; without them the counts are those of this moment.
	now := url.Values{"disable_stats": {"true"}, "enable_queue_totals": {"true"}}
	all, err := rabbittest.Management(c.t, c.managementURL).ListQueuesWithParametersIn(c.vhost(), now)
	if err != nil {
		c.t.Fatalf("list queues: %v", err)
	}
	return all
}

// rawManagement returns what the management API answers byte by byte: a client
// with types would leave out what it does not know. A %s in path stands for the
// virtual host.
func (c *city) rawManagement(method, path, body string) []byte {
	c.t.Helper()
	path = strings.ReplaceAll(path, "%s", url.PathEscape(c.vhost()))
	req := must(http.NewRequestWithContext(c.t.Context(), method, c.managementURL+path, strings.NewReader(body)))
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	answer := must(io.ReadAll(res.Body))
	if res.StatusCode/100 != 2 {
		c.t.Fatalf("%s %s: %s: %s", method, path, res.Status, answer)
	}
	return answer
}
