//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

const (
	// A long pause of the primary is longer than its lease (ttl in
	// deploy/patroni/patroni.yml), so that another node is the primary when it ends.
	minNodePause, maxNodePause = 25 * time.Second, 40 * time.Second
	// askTimeout is when a PostgreSQL node that does not answer is taken for frozen.
	askTimeout = 2 * time.Second
)

// A node is one of a PostgreSQL cluster: Patroni, and the PostgreSQL that it has
// started.
type node struct {
	name string
	dir  string // of its data, with the links resolved
	pid  string // the pid file of Patroni
	rest string // the address of Patroni's REST API
}

// findNodes reads the ports that the stack has given to its nodes. There are none
// where it runs one PostgreSQL.
func findNodes(dir string) ([]node, error) {
	lines, err := portsOfNodes(dir, "postgres")
	if err != nil {
		return nil, err
	}
	var nodes []node
	for _, line := range lines {
		var ports devserver.PatroniPorts
		if err := ports.Set(line); err != nil {
			return nil, fmt.Errorf("ports of the PostgreSQL nodes: %w", err)
		}
		name := fmt.Sprintf("postgres-%d", len(nodes)+1)
		folder, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("find the folder of a PostgreSQL node: %w", err)
		}
		nodes = append(nodes, node{name, folder, filepath.Join(dir, name+".pid"), fmt.Sprintf("http://127.0.0.1:%d", ports.REST)})
	}
	return nodes, nil
}

// nodeKinds are the faults of PostgreSQL where it is a cluster. Each hits the
// primary, and returns once all nodes are there and as they were.
var nodeKinds = map[string]fault{
	// A machine that is lost: it is back only when another node is the primary.
	"postgres-kill": atPrimary(func(ctx context.Context, s *stack, n node, _ *rand.Rand) error {
		if err := n.kill(ctx); err != nil {
			return err
		}
		if err := s.awaitPrimaryOtherThan(ctx, n); err != nil {
			return err
		}
		return s.start(ctx, n.name)
	}),
	// One whose processes all die, and are started again at once.
	"postgres-crash": atPrimary(func(ctx context.Context, s *stack, n node, _ *rand.Rand) error {
		if err := n.kill(ctx); err != nil {
			return err
		}
		return s.start(ctx, n.name)
	}),
	// PostgreSQL dies, and Patroni lives and starts it again.
	"postgres-postmaster-kill": atPrimary(func(ctx context.Context, _ *stack, n node, _ *rand.Rand) error {
		pids, err := n.processes()
		if err != nil {
			return err
		}
		if err := syscall.Kill(pids[1], syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill PostgreSQL: %w", err)
		}
		return awaitEnd(ctx, pids[1:]) // until the last one has seen it, they answer as before
	}),
	"postgres-stop": atPrimary(func(ctx context.Context, s *stack, n node, _ *rand.Rand) error {
		pids, err := n.processes()
		if err != nil {
			return err
		}
		if err := syscall.Kill(pids[0], syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop Patroni: %w", err)
		}
		if err := awaitEnd(ctx, pids); err != nil {
			return err
		}
		return s.restore(ctx)
	}),
	"postgres-pause": atPrimary(func(ctx context.Context, _ *stack, n node, random *rand.Rand) error {
		length := between(random, minShortPause, maxShortPause)
		if random.IntN(2) == 0 {
			length = between(random, minNodePause, maxNodePause)
		}
		pids, err := n.processes()
		if err != nil {
			return err
		}
		return freeze(ctx, pids, length)
	}),
	"postgres-cut": atPrimary(func(ctx context.Context, s *stack, n node, random *rand.Rand) error {
		return cut(func(*stack, *rand.Rand) ([]int, error) { return n.processes() })(ctx, s, random)
	}),
	"postgres-switchover": atPrimary(func(ctx context.Context, s *stack, n node, _ *rand.Rand) error {
		if err := s.switchOver(ctx, n); err != nil {
			return err
		}
		return s.awaitPrimaryOtherThan(ctx, n)
	}),
}

// atPrimary is a fault of whichever node is the primary.
func atPrimary(what func(ctx context.Context, s *stack, n node, random *rand.Rand) error) fault {
	return func(ctx context.Context, s *stack, random *rand.Rand) error {
		var primary node
		err := poll(ctx, "a primary of PostgreSQL", func() (found bool) {
			primary, found = s.primary(ctx)
			return found
		})
		if err == nil {
			err = what(ctx, s, primary, random)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", primary.name, err)
		}
		return poll(ctx, "all PostgreSQL nodes follow a primary", func() bool { return s.whole(ctx) })
	}
}

// processes are those of Patroni, of the main process of its PostgreSQL, and of the
// others of it, in this order: what is killed or frozen first starts no more.
func (n node) processes() ([]int, error) {
	patroni, err := proc.ReadPID(n.pid)
	if err != nil {
		return nil, err
	}
	main, err := proc.ReadPID(filepath.Join(n.dir, "data", "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	pids := []int{patroni, main}
	for _, pid := range (&devserver.Postgres{Dir: n.dir}).Processes() {
		if pid != main {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// kill ends all processes of the node, as the loss of its machine would.
func (n node) kill(ctx context.Context) error {
	pids, err := n.processes()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
	// One that was just started ends by itself: the main process is gone.
	return errors.Join(awaitEnd(ctx, pids), (&devserver.Postgres{Dir: n.dir}).AwaitEnd(ctx, recoverWithin))
}

func awaitEnd(ctx context.Context, pids []int) error {
	for _, pid := range pids {
		if err := poll(ctx, fmt.Sprintf("the end of process %d", pid), func() bool { return !proc.Alive(pid) }); err != nil {
			return err
		}
	}
	return nil
}

// primary returns the node that says that it is the primary.
func (s *stack) primary(ctx context.Context) (node, bool) {
	for _, n := range s.nodes {
		if status, _, err := n.ask(ctx, http.MethodGet, "/primary", "", nil); err == nil && status == http.StatusOK {
			return n, true
		}
	}
	return node{}, false
}

func (s *stack) awaitPrimaryOtherThan(ctx context.Context, former node) error {
	return poll(ctx, "another primary of PostgreSQL", func() bool {
		primary, found := s.primary(ctx)
		return found && primary.name != former.name
	})
}

// whole reports whether one node is the primary, all others are standbys whose
// acknowledgement counts, and Patroni knows that: for a moment after a restart it has
// no standby that may take over, and its members still say what they were before.
func (s *stack) whole(ctx context.Context) bool {
	primary, found := s.primary(ctx)
	if !found {
		return false
	}
	var server struct {
		Replication []struct {
			State     string
			SyncState string `json:"sync_state"`
		}
	}
	var cluster struct {
		Members []struct{ Role, State string }
	}
	if !primary.read(ctx, "/patroni", &server) || !primary.read(ctx, "/cluster", &cluster) {
		return false
	}
	following := 0
	for _, r := range server.Replication {
		if r.State == "streaming" && r.SyncState == "quorum" {
			following++
		}
	}
	leaders, standbys := 0, 0
	for _, m := range cluster.Members {
		switch m.Role + " " + m.State {
		case "leader running":
			leaders++
		case "quorum_standby streaming":
			standbys++
		}
	}
	others := len(s.nodes) - 1
	return leaders == 1 && standbys == others && following == others
}

// switchOver has Patroni make another node the primary. It may refuse when nobody
// has caught up at that moment.
func (s *stack) switchOver(ctx context.Context, n node) error {
	password, err := os.ReadFile(filepath.Join(s.dir, "secrets", "postgres", "superuser_password"))
	if err != nil {
		return fmt.Errorf("read the password of Patroni's API: %w", err)
	}
	body, err := json.Marshal(map[string]string{"leader": n.name})
	if err != nil {
		return err
	}
	var errs error
	for range restoreTries {
		status, text, err := n.ask(ctx, http.MethodPost, "/switchover", string(password), body)
		if err == nil && status == http.StatusOK {
			return nil
		}
		errs = errors.Join(errs, err, fmt.Errorf("switch over: %d %s", status, text))
		if err := wait.For(ctx, time.Second); err != nil {
			return err
		}
	}
	return errs
}

// read asks the node's Patroni for what is at path, and reports whether that worked.
func (n node) read(ctx context.Context, path string, into any) bool {
	_, text, err := n.ask(ctx, http.MethodGet, path, "", nil)
	return err == nil && json.Unmarshal(text, into) == nil
}

// ask sends a request to the node's Patroni, as its administrator if a password is
// given. What changes something may take longer than what is only asked.
func (n node) ask(ctx context.Context, method, path, password string, body []byte) (status int, answer []byte, err error) {
	timeout := askTimeout
	if method != http.MethodGet {
		timeout = recoverWithin
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, n.rest+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if password != "" {
		req.SetBasicAuth(devserver.Superuser, password)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// poll asks until ok, but no longer than the stack may take to recover.
func poll(ctx context.Context, what string, ok func() bool) error {
	return wait.Until(ctx, recoverWithin, what, func(context.Context) (bool, error) { return ok(), nil })
}
