package devserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
)

// rabbitmqAccount is the name that distributions give to RabbitMQ's account.
const rabbitmqAccount = "rabbitmq"

// A RabbitMQ is a node of its own, with its own port mapper, or one of a cluster
// on this machine, whose nodes share one.
type RabbitMQ struct {
	Dir      string // all of it is the node's; Prepare makes it the real path
	Ports    RabbitMQPorts
	Password string // the superuser's
	// StatisticsInterval is how old the counts of the management API can be.
	StatisticsInterval time.Duration
	// LogFile is the size in bytes at which a file of the quorum queues' log is full,
	// 64 MiB if it is 0. The contents of the present file are in memory, too.
	LogFile int64
	// Unsynced leaves it to the system when what quorum queues write reaches the disk:
	// for what need not survive the machine.
	Unsynced bool
	// Node is the node's name, "cityconnect" if it is empty. Nodes has the names of
	// all nodes of its cluster; without any it stays alone. They recognise each other
	// by Cookie; a node alone makes its own.
	Node   string
	Nodes  []string
	Cookie string
	// TLS is served at ports of its own, beside the others.
	TLS      TLS
	TLSPorts struct{ AMQP, Management int }
}

// RabbitMQPorts are the ports of a node. Metrics may be 0: no metrics.
type RabbitMQPorts struct {
	AMQP, Management, Metrics, Distribution, PortMapper int
}

// RabbitMQPrograms returns the folder of RabbitMQ's own scripts. Debian's
// wrappers in /usr/sbin insist on the system's folders and user.
func RabbitMQPrograms() (string, error) {
	return find("rabbitmq-server", "/usr/lib/rabbitmq/bin", "/opt/homebrew/opt/rabbitmq/sbin", "/usr/local/opt/rabbitmq/sbin")
}

// PortMapperProgram returns the folder of epmd.
func PortMapperProgram() (string, error) {
	folders := []string{"/usr/bin", "/usr/lib/erlang/bin"}
	for _, pattern := range []string{"/usr/lib/erlang/erts-*/bin", "/usr/lib64/erlang/erts-*/bin"} {
		found, _ := filepath.Glob(pattern) // its only error is a wrong pattern
		folders = append(folders, found...)
	}
	return find("epmd", folders...)
}

// Prepare makes the folder and writes the node's whole configuration. Its data
// and its cookie stay.
func (r *RabbitMQ) Prepare() error {
	owner, err := folder(&r.Dir, rabbitmqAccount)
	if err != nil {
		return err
	}
	// With RabbitMQ's own 512 MB for a file of the log its memory rises for minutes
	// and falls at once.
	conf := fmt.Sprintf(`listeners.tcp.1 = 127.0.0.1:%d
management.tcp.ip = 127.0.0.1
management.tcp.port = %d
default_user = %s
default_pass = %s
collect_statistics_interval = %d
raft.wal_max_size_bytes = %d
log.console.level = warning
`, r.Ports.AMQP, r.Ports.Management, Superuser, r.Password, max(r.StatisticsInterval.Milliseconds(), 1), cmp.Or(r.LogFile, 64<<20))
	if r.TLS.Certificate != nil {
		certificate, key := filepath.Join(r.Dir, certificateFile), filepath.Join(r.Dir, keyFile)
		conf += fmt.Sprintf(`listeners.ssl.1 = 127.0.0.1:%d
ssl_options.certfile = %s
ssl_options.keyfile = %s
management.ssl.ip = 127.0.0.1
management.ssl.port = %d
management.ssl.certfile = %[2]s
management.ssl.keyfile = %[3]s
`, r.TLSPorts.AMQP, certificate, key, r.TLSPorts.Management)
	}
	if len(r.Nodes) > 1 {
		conf += fmt.Sprintf("cluster_formation.peer_discovery_backend = classic_config\ncluster_formation.target_cluster_size_hint = %d\n", len(r.Nodes))
		for i, node := range r.Nodes {
			conf += fmt.Sprintf("cluster_formation.classic_config.nodes.%d = %s\n", i+1, nodeName(node))
		}
		// A node without the others takes no clients. The others take a frozen one
		// for dead after net_ticktime, and not after the minute of RabbitMQ's own.
		conf += "cluster_partition_handling = pause_minority\nqueue_leader_locator = balanced\nnet_ticktime = 10\n"
	}
	plugins := "[rabbitmq_management]."
	if r.Ports.Metrics != 0 {
		conf += fmt.Sprintf("prometheus.tcp.ip = 127.0.0.1\nprometheus.tcp.port = %d\n", r.Ports.Metrics)
		plugins = "[rabbitmq_management,rabbitmq_prometheus]."
	}
	advanced := "[]."
	if r.Unsynced {
		advanced = "[{ra, [{wal_sync_method, none}]}]."
	}
	for name, content := range map[string]string{
		"rabbitmq.conf": conf, "enabled_plugins": plugins + "\n", "advanced.config": advanced + "\n", "rabbitmq-env.conf": "",
	} {
		if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	cookie := filepath.Join(r.Dir, ".erlang.cookie")
	if _, err := os.Stat(cookie); errors.Is(err, os.ErrNotExist) {
		secret := r.Cookie
		if secret == "" {
			secret = rand.Text()
		}
		if err := os.WriteFile(cookie, []byte(secret), 0o400); err != nil {
			return err
		}
	}
	if err := r.TLS.write(r.Dir); err != nil {
		return err
	}
	return give(r.Dir, owner)
}

// PortMapper returns epmd, to be started in the foreground. The node is started
// once it is ready: Erlang would start one as a daemon that nobody stops.
func (r *RabbitMQ) PortMapper() (*exec.Cmd, error) {
	folder, err := PortMapperProgram()
	if err != nil {
		return nil, err
	}
	return r.command(context.Background(), filepath.Join(folder, "epmd"), "-address", "127.0.0.1", "-port", strconv.Itoa(r.Ports.PortMapper))
}

// PortMapperReady returns nil once the port mapper answers.
func (r *RabbitMQ) PortMapperReady() error {
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", "127.0.0.1:"+strconv.Itoa(r.Ports.PortMapper))
	if err != nil {
		return err
	}
	return conn.Close()
}

// Command returns the prepared node, to be started in the foreground.
func (r *RabbitMQ) Command() (*exec.Cmd, error) {
	return r.Tool(context.Background(), "rabbitmq-server")
}

// Tool returns one of RabbitMQ's own programs for this node alone, such as
// rabbitmqctl.
func (r *RabbitMQ) Tool(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	folder, err := RabbitMQPrograms()
	if err != nil {
		return nil, err
	}
	return r.command(ctx, filepath.Join(folder, name), args...)
}

// Ready returns nil once the node serves AMQP and its management API.
func (r *RabbitMQ) Ready() error {
	client, err := r.management()
	if err != nil {
		return err
	}
	check, err := client.HealthCheckPortListener(uint(r.Ports.AMQP))
	if err == nil && !check.Ok() {
		err = errors.New(check.Reason)
	}
	return err
}

// management returns a client of the node's management API.
func (r *RabbitMQ) management() (*rabbithole.Client, error) {
	return Management(r.ManagementURL(), 30*time.Second)
}

// Management returns a client of the management API at address, a URL with user
// and password, whose requests end after timeout.
func Management(address string, timeout time.Duration) (*rabbithole.Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the management API's address is not a URL") // and may hold a password
	}
	password, _ := u.User.Password()
	client, err := rabbithole.NewClient("http://"+u.Host, u.User.Username(), password)
	if err != nil {
		return nil, err
	}
	client.SetTimeout(timeout)
	// The server closes a connection that waits for its next request for 5 s, also
	// under that request, and net/http repeats no PUT.
	client.SetTransport(&http.Transport{DisableKeepAlives: true})
	return client, nil
}

// URL returns the superuser's AMQP URL of the default virtual host.
func (r *RabbitMQ) URL() string {
	return fmt.Sprintf("amqp://%s:%s@127.0.0.1:%d/", Superuser, r.Password, r.Ports.AMQP)
}

// ManagementURL returns the URL of the management API, with user and password.
func (r *RabbitMQ) ManagementURL() string {
	return fmt.Sprintf("http://%s:%s@127.0.0.1:%d", Superuser, r.Password, r.Ports.Management)
}

func (r *RabbitMQ) command(ctx context.Context, path string, args ...string) (*exec.Cmd, error) {
	cmd, err := command(ctx, rabbitmqAccount, r.Dir, path, args...)
	if err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(r.Dir, name) }
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + r.Dir,
		// The script becomes the server instead of waiting for it: one pid for both.
		"RUNNING_UNDER_SYSTEMD=1",
		"RABBITMQ_NODENAME=" + nodeName(r.Node),
		"RABBITMQ_NODE_PORT=" + strconv.Itoa(r.Ports.AMQP), "RABBITMQ_DIST_PORT=" + strconv.Itoa(r.Ports.Distribution),
		"ERL_EPMD_PORT=" + strconv.Itoa(r.Ports.PortMapper), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_CONF_ENV_FILE=" + in("rabbitmq-env.conf"), "RABBITMQ_CONFIG_FILE=" + in("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + in("advanced.config"), "RABBITMQ_ENABLED_PLUGINS_FILE=" + in("enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + in("mnesia"), "RABBITMQ_MNESIA_DIR=" + in("mnesia/node"),
		"RABBITMQ_LOG_BASE=" + in("log"), "RABBITMQ_LOGS=-", "RABBITMQ_PID_FILE=" + in("server.pid"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
	}
	return cmd, nil
}

// nodeName returns the whole name of a node of this machine.
func nodeName(node string) string { return cmp.Or(node, "cityconnect") + "@localhost" }

// AddVhost makes a virtual host whose queues have a copy on each node of the
// cluster, dead-letter queues as well, unless it is there. Only rabbitmqctl can
// do that in versions before 4; it takes seconds of a processor to start.
func (r *RabbitMQ) AddVhost(ctx context.Context, name string) error {
	client, err := r.management()
	if err != nil {
		return err
	}
	vhosts, err := client.ListVhosts()
	if err != nil {
		return fmt.Errorf("list virtual hosts: %w", err)
	}
	if !slices.ContainsFunc(vhosts, func(v rabbithole.VhostInfo) bool { return v.Name == name }) {
		if err := execute(r.Tool(ctx, "rabbitmqctl", "--quiet", "add_vhost", name, "--default-queue-type", "quorum")); err != nil {
			return err
		}
	}
	res, err := client.UpdatePermissionsIn(name, Superuser, rabbithole.Permissions{Configure: ".*", Write: ".*", Read: ".*"})
	if err != nil {
		return fmt.Errorf("set permissions in virtual host: %w", err)
	}
	return res.Body.Close()
}

// String names the ports as Set reads them.
func (p *RabbitMQPorts) String() string {
	return fmt.Sprintf("%d,%d,%d,%d,%d", p.AMQP, p.Management, p.Metrics, p.Distribution, p.PortMapper)
}

// Set reads five ports with commas between them, for package flag.
func (p *RabbitMQPorts) Set(text string) error {
	ports, err := readPorts(text, "AMQP", "management", "metrics", "distribution", "port mapper")
	if err != nil {
		return err
	}
	*p = RabbitMQPorts{ports[0], ports[1], ports[2], ports[3], ports[4]}
	return nil
}

// readPorts reads one port for each name, with commas between them.
func readPorts(text string, names ...string) ([]int, error) {
	var ports []int
	for field := range strings.SplitSeq(text, ",") {
		port, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	if len(ports) != len(names) {
		return nil, fmt.Errorf("must be %d ports: %s", len(names), strings.Join(names, ", "))
	}
	return ports, nil
}
