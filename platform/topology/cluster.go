package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
)

// quorum is the type of a queue that has a copy on several nodes of a cluster.
const quorum = "quorum"

// Copies are the nodes of a cluster that have a queue, by name. The lists are
// sorted, and never nil.
type Copies struct {
	Leader  string   // the node that leads it, empty while none does
	Members []string // the nodes that have a copy
	Online  []string // those of them whose copy can be used now
}

// A Node is one of the broker, with what makes it refuse messages: an alarm of its
// memory or its disk stops all publishers of the cluster.
type Node struct {
	Name        string
	Running     bool
	MemoryUsed  int64 // bytes, as all figures here; 0 of a node that does not run
	MemoryLimit int64
	MemoryAlarm bool
	DiskFree    int64
	DiskLimit   int64 // free space below this is an alarm
	DiskAlarm   bool
}

// Nodes returns the nodes of the broker by name, as they were read in the last half
// minute; none without the management API, or a user who may see them.
func (c *Checker) Nodes() []Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.nodesAt) > nodesFor {
		return nil
	}
	return slices.Clone(c.nodes)
}

// readNodes asks for the nodes. It takes the tag "monitoring": an account without
// it sees none, and that counts as healthy.
func (c *Checker) readNodes(ctx context.Context) {
	if c.management == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, nodesTimeout)
	defer cancel()
	nodes, err := c.management.nodes(ctx)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes, c.nodesAt = nodes, time.Now()
}

// nodes returns the nodes of the broker by name.
func (m *management) nodes(ctx context.Context) ([]Node, error) {
	client, cancel, err := m.client(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	list, err := visibleNodes(client)
	if err != nil {
		return nil, err
	}
	nodes := make([]Node, len(list))
	for i := range list {
		n := &list[i]
		nodes[i] = Node{
			Name: n.Name, Running: n.IsRunning,
			MemoryUsed: int64(n.MemUsed), MemoryLimit: int64(n.MemLimit), MemoryAlarm: n.MemAlarm,
			DiskFree: int64(n.DiskFree), DiskLimit: int64(n.DiskFreeLimit), DiskAlarm: n.DiskFreeAlarm,
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, nil
}

// copies returns where each of our queues is that has several copies; none on a
// single node.
func (need needed) copies(have snapshot) map[string]Copies {
	copies := make(map[string]Copies)
	for _, h := range have.queues {
		if len(h.Members) < 2 || !need.reads(h.Name) {
			continue
		}
		c := Copies{Members: append([]string{}, h.Members...), Online: append([]string{}, h.Online...)}
		slices.Sort(c.Members)
		slices.Sort(c.Online)
		if slices.Contains(c.Online, h.Leader) { // the API goes on naming a leader that is gone
			c.Leader = h.Leader
		}
		copies[h.Name] = c
	}
	return copies
}

// compareCopies finds what is not as safe as the cluster could make it: nodes
// that are down or do not see each other, and queues with fewer copies than
// there are nodes. On a single node there is nothing to find.
func (need needed) compareCopies(have snapshot) (findings []Finding) {
	var ours []rabbithole.QueueInfo
	members := len(have.nodes)
	for _, h := range have.queues {
		if need.reads(h.Name) {
			ours = append(ours, h)
			members = max(members, len(h.Members))
		}
	}
	if members < 2 {
		return nil
	}
	offline := make(map[string]int) // how many of our queues have a copy there that is not up to date
	for _, n := range have.nodes {
		if !n.IsRunning {
			offline[n.Name] = 0
		}
		if len(n.Partitions) > 0 {
			findings = append(findings, Finding{
				fmt.Sprintf("node %s does not see %s, though all of them run", n.Name, strings.Join(n.Partitions, ", ")),
				"on the node that was away: rabbitmqctl stop_app, then rabbitmqctl start_app",
			})
		}
	}
	for _, q := range ours {
		switch {
		case q.Type != quorum && isDown(q):
			findings = append(findings, Finding{
				fmt.Sprintf("queue %s is down with node %s, which has its only copy", q.Name, q.Node),
				"start that node; then give the queue more copies, as docs/performance.md says",
			})
		case q.Type != quorum:
			findings = append(findings, Finding{
				fmt.Sprintf("queue %s has one copy, in a cluster of %d nodes", q.Name, members),
				"use a virtual host whose default queue type is quorum, as docs/performance.md says",
			})
		case len(q.Online) <= len(q.Members)/2:
			findings = append(findings, Finding{
				fmt.Sprintf("queue %s has lost its majority: %d of %d copies are there, and it takes and gives no message", q.Name, len(q.Online), len(q.Members)),
				"start the other nodes; until then, messages wait in the outbox",
			})
		case len(q.Members) < members:
			findings = append(findings, Finding{
				fmt.Sprintf("queue %s has copies on %d of %d nodes", q.Name, len(q.Members), members),
				"rabbitmq-queues grow NODE all, for each node that is missing",
			})
		}
		for _, member := range q.Members {
			if !slices.Contains(q.Online, member) {
				offline[member]++
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(offline)) {
		findings = append(findings, Finding{
			fmt.Sprintf("node %s of the cluster is down: %d queues have one copy less", node, offline[node]),
			"start that node; nothing is lost as long as more than half of the nodes run",
		})
	}
	return findings
}

// isDown reports whether a queue cannot be used because its node is down.
func isDown(q rabbithole.QueueInfo) bool { return q.Status == "down" }
