// Command servers is what scripts/stack knows of PostgreSQL and RabbitMQ: how
// they are found, set up and asked whether they are ready.
//
//	servers find postgres|rabbitmq     prints the folder of its programs
//	servers run postgres|etcd|patroni|epmd|rabbitmq [flags]
//	                                   sets the server up and becomes it: the pid
//	                                   of this process is then the server's
//	servers ready postgres|etcd|patroni|epmd|rabbitmq [flags]
//	                                   exits with 0 once it answers
//	servers vhost rabbitmq -name NAME [flags]
//	                                   makes a virtual host whose queues have copies
//	                                   on all nodes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
)

// The first thread runs main: become then ends the others, and never the one that
// has this process's pid. A process that is replaced by another of its threads is a
// zombie for that moment, and who looks then takes the server for ended.
func init() { runtime.LockOSThread() }

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: servers find|run|ready|vhost postgres|etcd|patroni|rabbitmq|epmd [flags]")

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) < 2 {
		return errUsage
	}
	verb, server := args[0], args[1]
	if verb == "find" {
		return find(server, out)
	}
	s, err := parse(args[2:])
	if err != nil {
		return err
	}
	if n := len(s.patroni.Cluster); (server == "etcd" || server == "patroni") && (s.patroni.Number < 1 || s.patroni.Number > n) {
		return fmt.Errorf("-number %d: must be one of the %d nodes of -cluster, from 1", s.patroni.Number, n)
	}
	switch verb + " " + server {
	case "ready postgres":
		return s.postgres.Ready(ctx)
	case "ready etcd":
		return s.patroni.EtcdReady(ctx)
	case "ready patroni":
		return s.patroni.Ready(ctx)
	case "ready epmd":
		return s.rabbitmq.PortMapperReady()
	case "ready rabbitmq":
		return s.rabbitmq.Ready()
	case "vhost rabbitmq":
		if err := s.rabbitmq.Prepare(); err != nil { // it finds the real folder
			return err
		}
		return s.rabbitmq.AddVhost(ctx, s.vhost)
	case "run postgres":
		if err := s.postgres.Prepare(ctx); err != nil {
			return err
		}
		return become(s.postgres.Command())
	case "run etcd":
		if err := s.patroni.PrepareEtcd(); err != nil {
			return err
		}
		return become(s.patroni.Etcd())
	case "run patroni":
		if err := s.patroni.Prepare(ctx); err != nil {
			return err
		}
		return become(s.patroni.Command())
	case "run rabbitmq":
		if err := s.rabbitmq.Prepare(); err != nil {
			return err
		}
		return become(s.rabbitmq.Command())
	case "run epmd":
		if err := s.rabbitmq.Prepare(); err != nil {
			return err
		}
		return become(s.rabbitmq.PortMapper())
	}
	return errUsage
}

// servers are what the flags say of each kind of server.
type servers struct {
	postgres devserver.Postgres
	patroni  devserver.Patroni
	rabbitmq devserver.RabbitMQ
	vhost    string
}

func parse(args []string) (*servers, error) {
	s := new(servers)
	flags := flag.NewFlagSet("servers", flag.ContinueOnError)
	dir := flags.String("dir", "", "`folder` of the server")
	passwordFile := flags.String("password", "", "`file` with the superuser's password")
	flags.IntVar(&s.postgres.Port, "port", 0, "port of PostgreSQL")
	s.postgres.Settings = []string{"max_connections=400", "shared_buffers=256MB", "max_wal_size=4GB"}
	flags.Func("set", "another `setting` of PostgreSQL, such as fsync=off", func(setting string) error {
		s.postgres.Settings = append(s.postgres.Settings, setting)
		return nil
	})
	flags.IntVar(&s.patroni.Number, "number", 0, "`number` of the PostgreSQL node or of its member of etcd, from 1")
	flags.Func("cluster", "the `ports` of all PostgreSQL nodes, with spaces between them: PostgreSQL, Patroni, etcd, etcd's peers", func(text string) error {
		for field := range strings.FieldsSeq(text) {
			var ports devserver.PatroniPorts
			if err := ports.Set(field); err != nil {
				return err
			}
			s.patroni.Cluster = append(s.patroni.Cluster, ports)
		}
		return nil
	})
	flags.StringVar(&s.patroni.Program, "patroni", "", "`program` of Patroni, or a Debian package of it")
	flags.StringVar(&s.patroni.Settings, "settings", "", "`file` that all nodes of Patroni share")
	flags.Var(&s.rabbitmq.Ports, "ports", "the five `ports` of RabbitMQ: AMQP, management, metrics, distribution, port mapper")
	flags.DurationVar(&s.rabbitmq.StatisticsInterval, "statistics", 5*time.Second, "how old RabbitMQ's statistics can be")
	flags.Int64Var(&s.rabbitmq.LogFile, "log-file", 0, "the `bytes` of a file of RabbitMQ's quorum queues, 64 MiB by default")
	flags.BoolVar(&s.rabbitmq.Unsynced, "unsynced", false, "whether RabbitMQ leaves it to the system when the disk has what its quorum queues write")
	flags.StringVar(&s.rabbitmq.Node, "node", "", "`name` of the RabbitMQ node")
	nodes := flags.String("nodes", "", "`names` of all nodes of its cluster, with commas")
	cookieFile := flags.String("cookie", "", "`file` with what the nodes know each other by")
	flags.StringVar(&s.vhost, "name", "", "`name` of the virtual host")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	secret, err := os.ReadFile(*passwordFile)
	if err != nil {
		return nil, fmt.Errorf("read the superuser's password: %w", err)
	}
	password := strings.TrimSpace(string(secret))
	s.postgres.Dir, s.patroni.Dir, s.rabbitmq.Dir = *dir, *dir, *dir
	s.postgres.Password, s.patroni.Password, s.rabbitmq.Password = password, password, password
	if *nodes != "" {
		cookie, err := os.ReadFile(*cookieFile)
		if err != nil {
			return nil, fmt.Errorf("read the nodes' cookie: %w", err)
		}
		s.rabbitmq.Nodes, s.rabbitmq.Cookie = strings.Split(*nodes, ","), strings.TrimSpace(string(cookie))
	}
	return s, nil
}

func find(server string, out io.Writer) error {
	programs := devserver.PostgresPrograms
	if server == "rabbitmq" {
		programs = devserver.RabbitMQPrograms
	}
	found, err := programs()
	if err == nil {
		_, err = fmt.Fprintln(out, found)
	}
	return err
}

// become replaces this process by the command, under the command's account.
func become(cmd *exec.Cmd, err error) error {
	if err != nil {
		return err
	}
	if err := os.Chdir(cmd.Dir); err != nil {
		return err
	}
	if account := cmd.SysProcAttr.Credential; account != nil {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(int(account.Gid)), syscall.Setuid(int(account.Uid))); err != nil {
			return fmt.Errorf("drop root's rights: %w", err)
		}
	}
	return fmt.Errorf("start %s: %w", cmd.Path, syscall.Exec(cmd.Path, cmd.Args, cmd.Environ()))
}
