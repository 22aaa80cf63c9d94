package topology

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A site is a virtual host with the declared topology, and its checker.
type site struct {
	*Topology
	conn    *amqp.Connection
	ch      *amqp.Channel
	checker *Checker
	log     *lines

	api *rabbithole.Client
}

// lines keeps what was logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.buf.Bytes(), []byte(text))
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := newEmptySite(t)
	must(t, s.Declare(t.Context(), s.conn))
	return s
}

// newEmptySite is a site of which nothing is declared yet.
func newEmptySite(t *testing.T) *site {
	t.Helper()
	url := rabbittest.Vhost(t)
	s := &site{Topology: New(event.Topology{}, nil, Group{Name: "notifications", Queues: ContractQueues()}), log: new(lines), api: rabbittest.Management(t, api(t))}
	var err error
	s.checker, err = NewChecker(s.Topology, api(t), rabbit.Config{URL: url, Log: zerolog.New(s.log)})
	must(t, err)
	if s.conn, err = amqp.Dial(url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	if s.ch, err = s.conn.Channel(); err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Without the management API nothing is checked, and operators read that at once.
func TestCheckerWithoutManagement(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	checker, err := NewChecker(s.Topology, "", rabbit.Config{Log: zerolog.New(s.log)})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, checker.Run(ctx))
	checker.Check(t.Context())
	findings := checker.Findings()
	if len(findings) != 1 || !strings.Contains(findings[0].What, "RABBITMQ_MANAGEMENT_URL") || findings[0].Remedy == "" {
		t.Errorf("findings: %v, must be one that names RABBITMQ_MANAGEMENT_URL", findings)
	}
	if warned := s.log.count("RABBITMQ_MANAGEMENT_URL is not set"); warned != 1 {
		t.Errorf("warned %d times, must be once", warned)
	}
}

func TestCheckerFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	queue := s.Names.Queue(event.VoteReceivedKey)
	_, err := s.ch.QueueDelete(s.Names.Retry("1s"), false, false, false)
	must(t, err)
	_, err = s.ch.QueueDeclare(s.Names.Retry("1s"), true, false, false, false, amqp.Table{"x-message-ttl": int32(9000)})
	must(t, err)
	must(t, s.ch.QueueBind(queue, "", s.Names.Retry("5s"), false, nil))
	s.checker.Check(t.Context())
	all := fmt.Sprint(s.checker.Findings())
	for _, want := range []string{
		`queue cityconnect.retry.1s has x-message-ttl = 9000, must be 1000`,
		`queue queue.vote_received is bound to cityconnect.retry.5s, and gets a copy of every retry`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("not found: %s", want)
		}
	}
	t.Logf("%d findings", len(s.checker.Findings()))
}

// A missing part is declared by the service itself, and not only when a message meets
// the gap.
func TestCheckerDeclaresWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	queue := s.Names.Queue(event.VoteReceivedKey)
	must(t, s.ch.QueueUnbind(queue, string(event.VoteReceivedKey), s.Names.Exchange(), nil))
	_, err := s.ch.QueueDelete(s.Names.DeadLetterQueue(queue), false, false, false)
	must(t, err)
	s.checker.Check(t.Context())
	if got := s.checker.Findings(); len(got) != 0 {
		t.Errorf("after the check still missing: %v", got)
	}
	if s.log.count(".dlq is missing") != 1 || s.log.count("is not bound to") < 1 {
		t.Errorf("the log does not name what was missing: %s", &s.log.buf)
	}
	err = s.ch.PublishWithContext(t.Context(), s.Names.Exchange(), string(event.VoteReceivedKey), true, false, amqp.Publishing{})
	must(t, err)
	eventually.NothingMissing(t, "messages through the binding", func() string {
		if q, err := s.ch.QueueDeclarePassive(queue, true, false, false, false, nil); err != nil || q.Messages != 1 {
			return fmt.Sprint(q.Messages, err)
		}
		return ""
	})
}

// A service that is slow to declare is not a fault of the broker.
func TestCheckerWaitsForTheDeclaration(t *testing.T) {
	t.Parallel()
	s := newEmptySite(t)
	s.checker.firstCheck = 0
	// Differences show when the first check is over.
	_, err := s.ch.QueueDeclare(s.Names.Retry("1s"), true, false, false, false, nil)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.checker.Run(ctx) })
	defer running.Wait()
	defer stop()
	eventually.NothingMissing(t, "the checker runs", func() string {
		if s.log.count("policy set") < len(s.policies) {
			return "not all policies are set"
		}
		return ""
	})
	if _, ok := errors.AsType[*rabbit.MismatchError](s.Declare(t.Context(), s.conn)); !ok {
		t.Error("Declare does not report the queue that differs")
	}
	eventually.NothingMissing(t, "the first check", func() string {
		if len(s.checker.Findings()) == 0 {
			return "nothing is found yet"
		}
		return ""
	})
	if s.log.count("topology is incomplete") != 0 {
		t.Errorf("checked before everything was declared: %s", &s.log.buf)
	}
}

// A queue that differs keeps nothing else from being declared.
func TestDeclareGoesOnAfterAMismatch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, last := s.Names.Queue(event.Keys()[0]), s.Names.Retry("30s")
	for _, name := range []string{first, last} {
		_, err := s.ch.QueueDelete(name, false, false, false)
		must(t, err)
	}
	_, err := s.ch.QueueDeclare(first, true, false, false, false, nil)
	must(t, err)
	if _, ok := errors.AsType[*rabbit.MismatchError](s.Declare(t.Context(), s.conn)); !ok {
		t.Error("Declare does not report the queue that differs")
	}
	if _, err := s.ch.QueueDeclarePassive(last, true, false, false, false, nil); err != nil {
		t.Errorf("the queue behind it was not declared: %v", err)
	}
}

// A broker that lost its disk, or an operator, may take the policies away at
// any time.
func TestCheckerAppliesPoliciesAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.checker.Check(t.Context())
	checkPolicies(t, s, "at first")
	for _, p := range s.policies {
		_, err := s.api.DeletePolicy(s.checker.management.vhost, p.Name)
		must(t, err)
	}
	s.checker.Check(t.Context())
	checkPolicies(t, s, "after they were deleted")
}

func checkPolicies(t *testing.T, s *site, when string) {
	t.Helper()
	have, err := s.api.ListPoliciesIn(s.checker.management.vhost)
	must(t, err)
	for _, want := range s.policies {
		if !slices.ContainsFunc(have, func(p rabbithole.Policy) bool { return p.Name == want.Name && p.Pattern == want.Pattern }) {
			t.Errorf("%s: policy %s is missing: %+v", when, want.Name, have)
		}
	}
}

// Management shows a policy at its queues seconds after it was set, and after
// the broker started. That is not a difference; an operator's policy is.
func TestCheckerJudgesPoliciesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.checker.Check(t.Context()) // sets them
	s.checker.Check(t.Context())
	if n := s.log.count("topology differs"); n != 0 {
		t.Errorf("%d complaints about policies that were just set: %s", n, &s.log.buf)
	}
	for name, priority := range map[string]int{"weaker": policyPriority - 1, "operator": policyPriority + 1} {
		must(t, s.checker.management.setPolicy(t.Context(), rabbithole.Policy{
			Name: name, Pattern: ".*", ApplyTo: "queues", Priority: priority, Definition: rabbithole.PolicyDefinition{"max-length": 1},
		}))
	}
	s.checker.Check(t.Context())
	want := `queue queue.vote_received has delivery-limit = <nil> by policy "operator", must be 20`
	if all := fmt.Sprint(s.checker.Findings()); !strings.Contains(all, want) || strings.Contains(all, "weaker") {
		t.Errorf("findings %s, want among them: %s", all, want)
	}
}

// A queue that another process reads has that process's policy, with settings that none
// of ours has. That process compares it.
func TestPolicyOfAnotherProcessIsNoFinding(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.withExtra(&audience{wanted: true}, true)
	must(t, s.checker.management.setPolicy(t.Context(), rabbithole.Policy{
		Name: "cityconnect-queues-extra", Pattern: "^queue\\.extra$", ApplyTo: "queues", Priority: policyPriority,
		Definition: rabbithole.PolicyDefinition{"delivery-limit": deliveryLimit, "max-length-bytes": maxBytes},
	}))
	s.checker.Check(t.Context()) // declares the queue
	s.checker.Check(t.Context())
	if findings := s.checker.Findings(); len(findings) != 0 {
		t.Errorf("findings %v, want none", findings)
	}
}

// Policies of operators apply besides ours, and no list of policies shows them.
func TestCheckerFindsOperatorPolicies(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.checker.Check(t.Context())
	_, err := s.api.PutOperatorPolicy(s.checker.management.vhost, "short", rabbithole.OperatorPolicy{
		Pattern: "status_updates", ApplyTo: "queues", Definition: rabbithole.PolicyDefinition{"message-ttl": 2000, "max-length": 10},
	})
	must(t, err)
	eventually.NothingMissing(t, "the findings", func() string {
		s.checker.Check(t.Context())
		all := fmt.Sprint(s.checker.Findings())
		for _, want := range []string{
			`queue queue.status_updates has message-ttl = 2000 by policy "short"`, `queue queue.status_updates has max-length = 10`,
			`queue queue.status_updates.dlq has message-ttl = 2000 by policy "short"`, "take message-ttl out of the operator policy short",
		} {
			if !strings.Contains(all, want) {
				return want + " in " + all
			}
		}
		return ""
	})
}
