package rabbittest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A Server is a RabbitMQ node of one test alone, which may stop, kill and
// pause it. It keeps its ports and its data over restarts.
type Server struct {
	t                             testing.TB
	dir                           string
	amqp, management, dist, epmdP int // ports
	cred                          *syscall.Credential
	cmd, epmd                     *exec.Cmd
}

// StartServer makes a node with a data folder, a name and a port mapper of its
// own and starts it, which takes some seconds. It is killed when t ends.
func StartServer(t testing.TB) *Server {
	t.Helper()
	ports := freePorts(t, 4)
	s := &Server{t: t, amqp: ports[0], management: ports[1], dist: ports[2], epmdP: ports[3]}
	// Not t.TempDir: its parents are closed to an unprivileged user.
	dir, err := os.MkdirTemp("", "rabbittest")
	if err != nil {
		t.Fatalf("rabbittest: make folder: %v", err)
	}
	s.dir = dir
	t.Cleanup(func() { os.RemoveAll(dir) })
	s.configure()
	s.dropRoot()
	s.startPortMapper()
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

// URL returns the AMQP URL of the node.
func (s *Server) URL() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", s.amqp) }

// Vhost returns the URL of a fresh virtual host of the node.
func (s *Server) Vhost() string {
	s.t.Helper()
	return newVhost(s.t, s.URL(), s.ManagementURL())
}

// Addr returns the node's host and port, for a proxy in between.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.amqp) }

// ManagementURL returns the URL of the node's management API.
func (s *Server) ManagementURL() string {
	return fmt.Sprintf("http://guest:guest@127.0.0.1:%d", s.management)
}

// Start starts a stopped node and returns once it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd = s.command(filepath.Join(binFolder(s.t), "rabbitmq-server"))
	s.run(s.cmd, "log")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), setupTimeout)
	defer cancel()
	management := Management(s.t, s.ManagementURL())
	for {
		check, err := management.HealthCheckPortListener(uint(s.amqp))
		if err == nil && check.Ok() {
			return
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.t.Fatalf("rabbittest: node does not answer: %v\n%s", err, log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop ends the node cleanly.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the node as a power cut would. Killing a stopped one does nothing.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause freezes the node and every connection to it, until Resume.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused node go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// SetDiskAlarm makes the node believe that its disk is full, or no longer so.
// It blocks whoever publishes while the alarm is on. It returns once the alarm
// is set or cleared.
func (s *Server) SetDiskAlarm(on bool) {
	s.t.Helper()
	limit := "{mem_relative, 0.0}"
	if on {
		limit = "1000000000000000"
	}
	out, err := s.command(filepath.Join(binFolder(s.t), "rabbitmqctl"), "--quiet", "eval",
		fmt.Sprintf("rabbit_disk_monitor:set_disk_free_limit(%s), rabbit_alarm:get_alarms().", limit)).CombinedOutput()
	if err != nil {
		s.t.Fatalf("rabbittest: set disk limit: %v\n%s", err, out)
	}
}

// end signals the node and waits for it. Its exit code says only how we ended it.
func (s *Server) end(signal syscall.Signal) {
	if s.cmd == nil {
		return
	}
	s.signal(syscall.SIGCONT) // a paused process takes no SIGTERM
	s.signal(signal)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// signal reaches the whole process group: Erlang's helpers belong to it.
func (s *Server) signal(signal syscall.Signal) {
	_ = syscall.Kill(-s.cmd.Process.Pid, signal) // it may have ended meanwhile
}

func (s *Server) startPortMapper() {
	path, err := exec.LookPath("epmd")
	if err != nil {
		s.t.Fatal("rabbittest: Erlang's epmd is not installed: run `make test`, which installs RabbitMQ")
	}
	// In the foreground: Erlang would start one as a daemon that nobody stops.
	s.epmd = s.command(path, "-address", "127.0.0.1", "-port", strconv.Itoa(s.epmdP))
	s.run(s.epmd, "epmd.log")
	s.t.Cleanup(func() {
		_ = s.epmd.Process.Kill()
		_ = s.epmd.Wait()
	})
	for range 1000 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.epmdP))
		if err == nil {
			_ = conn.Close()
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	s.t.Fatal("rabbittest: epmd does not answer")
}

func (s *Server) run(cmd *exec.Cmd, logName string) {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatalf("rabbittest: open log: %v", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("rabbittest: start %s: %v", filepath.Base(cmd.Path), err)
	}
}

// command prepares one of RabbitMQ's own programs for this node alone.
func (s *Server) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + s.dir,
		"RUNNING_UNDER_SYSTEMD=1", // the script becomes the server instead of waiting for it
		fmt.Sprintf("RABBITMQ_NODENAME=test-%d@localhost", s.amqp),
		fmt.Sprintf("RABBITMQ_NODE_PORT=%d", s.amqp), fmt.Sprintf("RABBITMQ_DIST_PORT=%d", s.dist),
		fmt.Sprintf("ERL_EPMD_PORT=%d", s.epmdP), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(s.dir, "rabbitmq-env.conf"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(s.dir, "rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + filepath.Join(s.dir, "advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(s.dir, "enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(s.dir, "mnesia"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(s.dir, "log.d"), "RABBITMQ_LOGS=-",
		"RABBITMQ_PID_FILE=" + filepath.Join(s.dir, "server.pid"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
	}
	return cmd
}

func (s *Server) configure() {
	for name, content := range map[string]string{
		"rabbitmq.conf": fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = %d\n"+
			"collect_statistics_interval = 500\nlog.console.level = warning\n", s.amqp, s.management),
		"enabled_plugins":   "[rabbitmq_management].\n",
		"advanced.config":   "[].\n",
		"rabbitmq-env.conf": "",
		".erlang.cookie":    "RABBITTESTOFONETESTALONE",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o400); err != nil {
			s.t.Fatalf("rabbittest: configure: %v", err)
		}
	}
}

// dropRoot picks the distribution's rabbitmq user when the test runs as root.
func (s *Server) dropRoot() {
	if os.Getuid() != 0 {
		return
	}
	account, err := user.Lookup("rabbitmq")
	if err != nil {
		return // Erlang runs as root too
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	paths, _ := filepath.Glob(filepath.Join(s.dir, "*"))
	for _, path := range append(paths, s.dir, filepath.Join(s.dir, ".erlang.cookie")) {
		if err := os.Chown(path, uid, gid); err != nil {
			s.t.Fatalf("rabbittest: give folder to rabbitmq: %v", err)
		}
	}
	s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// binFolder finds RabbitMQ's own scripts. Debian's wrappers in /usr/sbin insist
// on their own folders and user.
func binFolder(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat("/usr/lib/rabbitmq/bin/rabbitmq-server"); err == nil {
		return "/usr/lib/rabbitmq/bin"
	}
	path, err := exec.LookPath("rabbitmq-server")
	if err != nil {
		t.Fatal("rabbittest: no RabbitMQ is installed: run `make test`, which installs it")
	}
	return filepath.Dir(path)
}

// freePorts returns n ports that were free a moment ago.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("rabbittest: find a port: %v", err)
		}
		defer listener.Close() // held until all are found, so that they differ
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports
}
