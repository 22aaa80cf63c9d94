package devserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// etcdAccount is the name that distributions give to etcd's account.
const etcdAccount = "etcd"

// A Patroni is one of several PostgreSQL nodes of this machine, one of which is
// the primary. Which one, they agree over etcd, of which each node has a member,
// with a folder of its own.
type Patroni struct {
	Dir      string         // all of it is the node's, or its member's; both Prepare methods make it the real path
	Number   int            // from 1
	Cluster  []PatroniPorts // of all nodes
	Password string         // of the superuser, of replication and of Patroni's REST API
	// Program is Patroni's, or a Debian package of it, which is unpacked into Dir and
	// run by Debian's Python. Settings is the file that all nodes share,
	// deploy/patroni/patroni.yml.
	Program, Settings string
}

// PatroniPorts are those of one node.
type PatroniPorts struct {
	Postgres, REST, Etcd, EtcdPeers int
}

// Name is what Patroni and etcd call the node.
func (p *Patroni) Name() string { return "postgres-" + strconv.Itoa(p.Number) }

func (p *Patroni) own() PatroniPorts { return p.Cluster[p.Number-1] }

// PrepareEtcd makes the folder of the node's member of etcd. Its data stays.
func (p *Patroni) PrepareEtcd() error {
	owner, err := folder(&p.Dir, etcdAccount)
	if err != nil {
		return err
	}
	return give(p.Dir, owner)
}

// Etcd returns the prepared member, to be started in the foreground. No other
// leader is elected because a disk is busy for a second.
func (p *Patroni) Etcd() (*exec.Cmd, error) {
	folder, err := find("etcd", "/usr/bin")
	if err != nil {
		return nil, err
	}
	members := make([]string, 0, len(p.Cluster))
	for i, ports := range p.Cluster {
		members = append(members, fmt.Sprintf("postgres-%d=%s", i+1, local(ports.EtcdPeers)))
	}
	cmd, err := command(context.Background(), etcdAccount, p.Dir, filepath.Join(folder, "etcd"), "--name="+p.Name(), "--data-dir="+filepath.Join(p.Dir, "data"),
		"--listen-client-urls="+local(p.own().Etcd), "--advertise-client-urls="+local(p.own().Etcd),
		"--listen-peer-urls="+local(p.own().EtcdPeers), "--initial-advertise-peer-urls="+local(p.own().EtcdPeers),
		"--initial-cluster="+strings.Join(members, ","), "--initial-cluster-state=new",
		"--heartbeat-interval=200", "--election-timeout=2000",
		"--auto-compaction-mode=periodic", "--auto-compaction-retention=1h", "--logger=zap", "--log-level=warn")
	if err != nil {
		return nil, err
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir}
	return cmd, nil
}

// EtcdReady returns nil once the member and a majority agree.
func (p *Patroni) EtcdReady(ctx context.Context) error {
	return answers(ctx, local(p.own().Etcd)+"/health")
}

// Prepare makes the folder and writes the node's whole configuration. Its data
// stays: Patroni makes it, on one node, and copies it to the others.
func (p *Patroni) Prepare(ctx context.Context) error {
	owner, err := folder(&p.Dir, postgresAccount)
	if err != nil {
		return err
	}
	shared, err := os.ReadFile(p.Settings)
	if err != nil {
		return fmt.Errorf("read what all nodes share: %w", err)
	}
	own, err := p.settings()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.config(), 0o700); err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(p.config(), "patroni.yml"), shared, 0o600),
		os.WriteFile(filepath.Join(p.config(), "this-node.yml"), own, 0o600))
	if err != nil {
		return err
	}
	if p.packaged() {
		if err := os.RemoveAll(p.unpacked()); err != nil {
			return err
		}
		if err := execute(exec.CommandContext(ctx, "dpkg-deb", "--extract", p.Program, p.unpacked()), nil); err != nil {
			return err
		}
		if err := give(p.unpacked(), owner); err != nil {
			return err
		}
	}
	if owner != nil { // PostgreSQL may run in the folder data, if only Patroni was killed
		if err := os.Lchown(p.Dir, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return give(p.config(), owner)
}

// settings returns the node's own settings in JSON, which is YAML, too.
func (p *Patroni) settings() ([]byte, error) {
	programs, err := PostgresPrograms()
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	hosts := make([]string, 0, len(p.Cluster))
	for _, ports := range p.Cluster {
		hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(ports.Etcd))
	}
	rest, server := "127.0.0.1:"+strconv.Itoa(p.own().REST), "127.0.0.1:"+strconv.Itoa(p.own().Postgres)
	superuser := object{"username": Superuser, "password": p.Password}
	return json.Marshal(object{
		"name":    p.Name(),
		"etcd3":   object{"hosts": hosts},
		"restapi": object{"listen": rest, "connect_address": rest, "authentication": superuser},
		"postgresql": object{
			"listen": server, "connect_address": server,
			"data_dir": filepath.Join(p.Dir, "data"), "bin_dir": programs, "pgpass": filepath.Join(p.Dir, "pgpass"),
			"authentication": object{"superuser": superuser, "replication": object{"username": "replicator", "password": p.Password}},
			"parameters":     object{"unix_socket_directories": ""},
		},
		"watchdog": object{"mode": "off"}, // it would restart this machine, and not a node
	})
}

// Command returns the prepared Patroni, to be started in the foreground. It starts
// PostgreSQL, which is not its child; Processes of a Postgres in the same folder
// lists it.
func (p *Patroni) Command() (*exec.Cmd, error) {
	// Nothing else of our environment: a PGPASSWORD would be taken instead of the
	// passwords that are configured.
	environment := []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + p.Dir}
	args := []string{p.Program, p.config()}
	if p.packaged() { // which asks for Debian's own Python
		args = []string{"/usr/bin/python3", "-m", "patroni", p.config()}
		environment = append(environment, "PYTHONPATH="+filepath.Join(p.unpacked(), "usr/lib/python3/dist-packages"))
	}
	cmd, err := command(context.Background(), postgresAccount, p.Dir, args[0], args[1:]...)
	if err != nil {
		return nil, err
	}
	cmd.Env = environment
	return cmd, nil
}

// Ready returns nil once the node's PostgreSQL serves, as the primary or as a
// standby.
func (p *Patroni) Ready(ctx context.Context) error {
	return answers(ctx, local(p.own().REST)+"/readiness")
}

func (p *Patroni) config() string   { return filepath.Join(p.Dir, "config") }
func (p *Patroni) unpacked() string { return filepath.Join(p.Dir, "patroni") }
func (p *Patroni) packaged() bool   { return strings.HasSuffix(p.Program, ".deb") }

func local(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

// answers returns nil if a GET is answered with 200.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is answered %s", url, res.Status)
	}
	return nil
}

// Set reads four ports with commas between them.
func (p *PatroniPorts) Set(text string) error {
	ports, err := readPorts(text, "PostgreSQL", "Patroni", "etcd", "etcd's peers")
	if err != nil {
		return err
	}
	*p = PatroniPorts{ports[0], ports[1], ports[2], ports[3]}
	return nil
}
