package rabbittest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A Server is a RabbitMQ node of one test alone, which may stop, kill and
// pause it. It keeps its ports and its data over restarts.
type Server struct {
	t   testing.TB
	own devserver.RabbitMQ
	log string
	cmd *exec.Cmd
}

// StartServer makes a node with a data folder, a name and a port mapper of its
// own and starts it, which takes some seconds. It is killed when t ends.
func StartServer(t testing.TB) *Server {
	t.Helper()
	return StartServerTLS(t, devserver.TLS{})
}

// folder returns where a node has its files: in memory where the tests' servers have
// theirs, since on a disk that others keep busy a node starts for minutes. It is not
// t.TempDir, whose parents are closed to the node's account.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("TEST_DATA"), "rabbittest")
	if err != nil {
		t.Fatalf("rabbittest: make folder: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// StartServerTLS starts one that takes connections over TLS at TLSPort and
// TLSManagementPort, too.
func StartServerTLS(t testing.TB, tls devserver.TLS) *Server {
	t.Helper()
	ports, err := devserver.FreePorts(6)
	if err != nil {
		t.Fatalf("rabbittest: %v", err)
	}
	dir := folder(t)
	s := &Server{t: t, log: filepath.Join(dir, "log.txt"), own: devserver.RabbitMQ{
		Dir: dir, Password: "guest", StatisticsInterval: 500 * time.Millisecond,
		Ports: devserver.RabbitMQPorts{AMQP: ports[0], Management: ports[1], Distribution: ports[2], PortMapper: ports[3]}, TLS: tls,
	}}
	s.own.TLSPorts.AMQP, s.own.TLSPorts.Management = ports[4], ports[5]
	if err := s.own.Prepare(); err != nil {
		t.Fatalf("rabbittest: %v", err)
	}
	s.startPortMapper()
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

// startPortMapper runs the port mapper until the test ends.
func (s *Server) startPortMapper() {
	s.t.Helper()
	mapper := s.run(s.own.PortMapper())
	s.t.Cleanup(func() {
		_ = mapper.Process.Kill()
		_ = mapper.Wait()
	})
	eventually.True(s.t, "rabbittest: epmd answers", func() bool { return s.own.PortMapperReady() == nil })
}

// URL returns the AMQP URL of the node.
func (s *Server) URL() string { return s.own.URL() }

// Vhost returns the URL of a fresh virtual host of the node.
func (s *Server) Vhost() string {
	s.t.Helper()
	return newVhost(s.t, s.URL(), s.ManagementURL())
}

// Addr returns the node's host and port, for a proxy in between.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.own.Ports.AMQP) }

// TLSPort returns the port of AMQP over TLS.
func (s *Server) TLSPort() int { return s.own.TLSPorts.AMQP }

// TLSManagementPort returns the port of the management API over TLS.
func (s *Server) TLSManagementPort() int { return s.own.TLSPorts.Management }

// ManagementURL returns the URL of the node's management API.
func (s *Server) ManagementURL() string { return s.own.ManagementURL() }

// Log returns what the node has logged so far.
func (s *Server) Log() string {
	s.t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		s.t.Fatalf("rabbittest: read log: %v", err)
	}
	return string(text)
}

// Start starts a stopped node and returns once it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd = s.run(s.own.Command())
	s.await()
}

// await returns once the node answers.
func (s *Server) await() {
	s.t.Helper()
	eventually.NothingMissing(s.t, "rabbittest: the node answers", func() string {
		if err := s.own.Ready(); err != nil {
			return fmt.Sprintf("%v\n%s", err, s.Log())
		}
		return ""
	})
}

// Stop ends the node cleanly.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the node as a power cut would. Killing a stopped one does nothing.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Destroy kills the node and deletes its data: it starts as an empty one.
func (s *Server) Destroy() {
	s.t.Helper()
	s.Kill()
	if err := os.RemoveAll(filepath.Join(s.own.Dir, "mnesia")); err != nil {
		s.t.Fatalf("rabbittest: delete data: %v", err)
	}
}

// Pause freezes the node and every connection to it, until Resume.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	if err := devserver.Freeze(s.cmd.Process.Pid); err != nil {
		s.t.Fatalf("rabbittest: pause: %v", err)
	}
}

// Resume lets a paused node go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// Hang makes each connection that the node has now hang: its heartbeats go on, and
// nothing more that its client sends is answered, not even its goodbye. New
// connections work.
func (s *Server) Hang() {
	s.t.Helper()
	s.eval("[catch sys:suspend(P) || P <- rabbit_networking:local_connections() ++ rabbit_channel:list_local()], ok.")
}

// SetDiskAlarm makes the node believe that its disk is full, or no longer so. It
// blocks publishers while the alarm is on. It returns once the alarm is set or
// cleared.
func (s *Server) SetDiskAlarm(on bool) {
	s.t.Helper()
	limit := "{mem_relative, 0.0}"
	if on {
		limit = "1000000000000000"
	}
	s.eval(fmt.Sprintf("rabbit_disk_monitor:set_disk_free_limit(%s), rabbit_alarm:get_alarms().", limit))
}

// SetConsumerTimeout makes the node end each subscription, of a channel that is opened
// from now on, that has a message in hand for so long, and look for these twice a second.
func (s *Server) SetConsumerTimeout(timeout time.Duration) {
	s.t.Helper()
	s.eval(fmt.Sprintf("[application:set_env(rabbit, K, V) || {K, V} <- [{consumer_timeout, %d}, {channel_tick_interval, 500}]].", timeout.Milliseconds()))
}

// SetDeliveryLimit makes a queue give up a message that is delivered more often again.
func (s *Server) SetDeliveryLimit(vhost, pattern string, limit int) {
	s.t.Helper()
	_, err := Management(s.t, s.ManagementURL()).PutOperatorPolicy(vhost, "delivery-limit", rabbithole.OperatorPolicy{
		Vhost: vhost, Pattern: pattern, ApplyTo: "queues", Definition: rabbithole.PolicyDefinition{"delivery-limit": limit},
	})
	if err != nil {
		s.t.Fatalf("rabbittest: set delivery limit: %v", err)
	}
}

// eval has the node evaluate an expression of Erlang.
func (s *Server) eval(expression string) {
	s.t.Helper()
	ctl, err := s.own.Tool(context.WithoutCancel(s.t.Context()), "rabbitmqctl", "--quiet", "eval", expression)
	if err != nil {
		s.t.Fatalf("rabbittest: %v", err)
	}
	if out, err := ctl.CombinedOutput(); err != nil {
		s.t.Fatalf("rabbittest: evaluate %s: %v\n%s", expression, err, out)
	}
}

// end signals the node and waits for it. Its exit code says only how we ended it.
func (s *Server) end(signal syscall.Signal) {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	s.signal(syscall.SIGCONT) // a paused process takes no SIGTERM
	s.signal(signal)
	patience := time.AfterFunc(setupTimeout, func() {
		s.t.Errorf("rabbittest: the node does not end by %v", signal)
		s.signal(syscall.SIGKILL)
	})
	_ = s.cmd.Wait()
	patience.Stop()
	s.cmd = nil
}

// signal reaches the whole process group: Erlang's helpers belong to it.
func (s *Server) signal(signal syscall.Signal) {
	_ = syscall.Kill(-s.cmd.Process.Pid, signal) // it may have ended by itself
}

// run starts a command that ends with the test's process, however that ends.
func (s *Server) run(cmd *exec.Cmd, err error) *exec.Cmd {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("rabbittest: %v", err)
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatalf("rabbittest: open log: %v", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("rabbittest: start %s: %v", filepath.Base(cmd.Path), err)
	}
	return cmd
}
