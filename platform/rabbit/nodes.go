package rabbit

import (
	"fmt"
	"net/url"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Nodes returns the URL of each node that address names. The nodes of a cluster
// stand in one URL, with commas between them:
// amqp://user:password@a:5672,b:5672/vhost. A heartbeat in it is left out, which
// would go before the one that the caller counts on.
func Nodes(address string) ([]string, error) {
	nodes := SplitHosts(address)
	for i, node := range nodes {
		u, err := url.Parse(node)
		if err == nil {
			_, err = amqp.ParseURI(node)
		}
		if err != nil || u.Host == "" && len(nodes) > 1 || strings.HasSuffix(u.Host, ":") {
			// The cause is left out: it may show the password.
			return nil, fmt.Errorf("%w: must be amqp://user:password@host:5672/vhost, or several hosts with commas between them", errURL)
		}
		query := u.Query()
		query.Del("heartbeat")
		u.RawQuery = query.Encode()
		nodes[i] = u.String()
	}
	return nodes, nil
}

// SplitHosts returns a URL for each of the hosts of address, a URL in which they
// stand with commas between them. Neither is checked.
func SplitHosts(address string) []string {
	start := 0
	if i := strings.Index(address, "://"); i >= 0 {
		start = i + len("://")
	}
	end := len(address)
	if i := strings.IndexAny(address[start:], "/?#"); i >= 0 {
		end = start + i
	}
	start += strings.LastIndex(address[start:end], "@") + 1
	var addresses []string
	for host := range strings.SplitSeq(address[start:end], ",") {
		addresses = append(addresses, address[:start]+host+address[end:])
	}
	return addresses
}
