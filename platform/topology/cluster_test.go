package topology

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A finding says what a cluster lacks and what an operator can do. The answers of the
// management API are those that three nodes of 3.10.8 gave.
func TestCopiesInACluster(t *testing.T) {
	t.Parallel()
	three := []string{"cc1@localhost", "cc2@localhost", "cc3@localhost"}
	broker := New(event.Topology{}, nil, Group{Name: "notifications", Queues: ContractQueues()}).needed(t.Context())
	whole := func(change func(q *rabbithole.QueueInfo)) (have snapshot) {
		for _, spec := range broker.queues {
			q := rabbithole.QueueInfo{Name: spec.name, Type: quorum, Status: "running", Node: three[0], Members: three, Online: three}
			change(&q)
			have.queues = append(have.queues, q)
		}
		return have
	}
	dlq := event.Topology{}.DeadLetterQueue(event.Topology{}.Queue(event.VoteReceivedKey))
	for _, tt := range []struct {
		name string
		have snapshot
		want []string // parts of the findings, in their order; none for none
	}{
		{"all is well", whole(func(*rabbithole.QueueInfo) {}), nil},
		{"a single node", whole(func(q *rabbithole.QueueInfo) { q.Members, q.Online = three[:1], three[:1] }), nil},
		{"dead letters with one copy", whole(func(q *rabbithole.QueueInfo) {
			if q.Name == dlq {
				q.Type, q.Members, q.Online = "classic", nil, nil
			}
		}), []string{"queue " + dlq + " has one copy, in a cluster of 3 nodes"}},
		{"and its node is down", whole(func(q *rabbithole.QueueInfo) {
			if q.Name == dlq {
				q.Type, q.Members, q.Online, q.Status = "classic", nil, nil, "down"
			}
		}), []string{"queue " + dlq + " is down with node cc1@localhost"}},
		{"a node is down", whole(func(q *rabbithole.QueueInfo) { q.Online = three[:2] }), []string{"node cc3@localhost of the cluster is down"}},
		{"a queue of the time before the cluster", whole(func(q *rabbithole.QueueInfo) {
			if strings.HasSuffix(q.Name, "1s") {
				q.Members, q.Online = three[:1], three[:1]
			}
		}), []string{"has copies on 1 of 3 nodes"}},
		{"no majority", whole(func(q *rabbithole.QueueInfo) {
			if q.Name == "queue.vote_received" {
				q.Online = three[:1]
			}
		}), []string{"queue queue.vote_received has lost its majority", "node cc2@localhost", "node cc3@localhost"}},
		{"a partition that stays", func() snapshot {
			have := whole(func(*rabbithole.QueueInfo) {})
			have.nodes = []rabbithole.NodeInfo{{Name: three[0], IsRunning: true, Partitions: three[2:]}, {Name: three[1], IsRunning: true}, {Name: three[2], IsRunning: true}}
			return have
		}(), []string{"node cc1@localhost does not see cc3@localhost"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			findings := broker.compareCopies(tt.have)
			matches := slices.EqualFunc(findings, tt.want, func(f Finding, want string) bool { return strings.Contains(f.What, want) && f.Remedy != "" })
			if !matches {
				t.Errorf("found %q, want %q", findings, tt.want)
			}
		})
	}
}

// The bindings of a queue whose node is down are not shown by the API. That must
// not be taken for a queue that nobody bound.
func TestQueueOfANodeThatIsDown(t *testing.T) {
	t.Parallel()
	broker := New(event.Topology{}, nil, Group{Name: "notifications", Queues: ContractQueues()}).needed(t.Context())
	dlq := event.Topology{}.DeadLetterQueue(event.Topology{}.Queue(event.VoteReceivedKey))
	missing, _ := broker.compare(snapshot{queues: []rabbithole.QueueInfo{{Name: dlq, Type: "classic", Status: "down", Node: "cc1@localhost"}}})
	if slices.ContainsFunc(missing, func(f Finding) bool { return strings.Contains(f.What, "queue "+dlq+" is not bound") }) {
		t.Errorf("found %q: the binding of a queue that is down", missing)
	}
}

// Operators see which nodes have a queue of ours, and which of them leads it;
// nothing of the queues of others, and nothing on a single node.
func TestWhereQueuesAre(t *testing.T) {
	t.Parallel()
	broker := New(event.Topology{}, nil, Group{Name: "notifications", Queues: ContractQueues()}).needed(t.Context())
	queue := event.Topology{}.Queue(event.VoteReceivedKey)
	have := snapshot{queues: []rabbithole.QueueInfo{
		{Name: queue, Type: quorum, Leader: "b", Members: []string{"c", "a", "b"}, Online: []string{"b", "a"}},
		{Name: "somebody's", Type: quorum, Leader: "a", Members: []string{"a", "b"}, Online: []string{"a", "b"}},
		{Name: event.Topology{}.Queue(event.ReportCreatedKey), Type: quorum, Leader: "a", Members: []string{"a"}, Online: []string{"a"}},
		{Name: event.Topology{}.Queue(event.StatusUpdatedKey), Type: quorum, Leader: "c", Members: []string{"a", "b", "c"}},
	}}
	want := map[string]Copies{
		queue: {"b", []string{"a", "b", "c"}, []string{"a", "b"}},
		event.Topology{}.Queue(event.StatusUpdatedKey): {"", []string{"a", "b", "c"}, []string{}},
	}
	if got := broker.copies(have); !reflect.DeepEqual(got, want) {
		t.Errorf("queues are %v, want %v", got, want)
	}
}

// The leader of a queue dies, and operators see on which nodes the queue goes
// on, and which of them leads it now.
func TestWhereQueuesAreWithoutTheirLeader(t *testing.T) {
	t.Parallel()
	cluster := rabbittest.StartCluster(t)
	broker := New(event.Topology{}, nil, Group{Name: "notifications", Queues: ContractQueues()})
	checker, err := NewChecker(broker, cluster.ManagementURL(), rabbit.Config{URL: cluster.Vhost(), Log: zerolog.Nop()})
	must(t, err)
	eventually.NothingMissing(t, "three copies of each queue", func() string {
		checker.Check(t.Context()) // declares them at first
		for _, q := range broker.needed(t.Context()).queues {
			if c := checker.Copies(q.name); c == nil || c.Leader == "" || len(c.Members) != 3 || len(c.Online) != 3 {
				return fmt.Sprintf("%s: %+v", q.name, c)
			}
		}
		return ""
	})
	queue := broker.Names.Queue(event.VoteReceivedKey)
	dead := checker.Copies(queue).Leader
	cluster.Node(dead).Kill()
	eventually.NothingMissing(t, "another leader", func() string {
		checker.Check(t.Context())
		c := checker.Copies(queue)
		if len(c.Members) != 3 || len(c.Online) != 2 || slices.Contains(c.Online, dead) || !slices.Contains(c.Online, c.Leader) {
			return fmt.Sprintf("%+v", *c)
		}
		if want := "node " + dead + " of the cluster is down"; !strings.Contains(fmt.Sprint(checker.Findings()), want) {
			return fmt.Sprintf("findings %v, want among them: %s", checker.Findings(), want)
		}
		return ""
	})
}

// Operators see the broker's nodes with their memory and disk; nothing of them
// without the management API, nor long after it last answered.
func TestNodesOfTheBroker(t *testing.T) {
	t.Parallel()
	blind := &Checker{}
	if blind.readNodes(t.Context()); blind.Nodes() != nil {
		t.Errorf("without the API there are nodes: %v", blind.Nodes())
	}
	c := &Checker{management: newClient(t, api(t), rabbittest.Vhost(t))}
	c.readNodes(t.Context())
	nodes := c.Nodes()
	if len(nodes) == 0 {
		t.Fatal("no node is seen")
	}
	for _, n := range nodes {
		if n.Name == "" || !n.Running || n.MemoryUsed == 0 || n.MemoryLimit == 0 || n.DiskFree == 0 || n.DiskLimit == 0 {
			t.Errorf("a node that runs is %+v", n)
		}
	}
	c.nodesAt = c.nodesAt.Add(-nodesFor)
	if c.Nodes() != nil {
		t.Error("what was read long ago is still the answer")
	}
}
