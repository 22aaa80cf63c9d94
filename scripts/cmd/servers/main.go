// Command servers is what scripts/stack knows of PostgreSQL and RabbitMQ: how
// they are found, set up and asked whether they are ready.
//
//	servers find postgres|rabbitmq     prints the folder of its programs
//	servers run postgres|epmd|rabbitmq [flags]
//	                                   sets the server up and becomes it: the pid
//	                                   of this process is then the server's
//	servers ready postgres|epmd|rabbitmq [flags]
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
	"strings"
	"syscall"
	"time"

	"github.com/cityconnect/cityconnect/platform/devserver"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: servers find|run|ready|vhost postgres|rabbitmq|epmd [flags]")

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) < 2 {
		return errUsage
	}
	verb, server := args[0], args[1]
	flags := flag.NewFlagSet("servers", flag.ContinueOnError)
	dir := flags.String("dir", "", "`folder` of the server")
	passwordFile := flags.String("password", "", "`file` with the superuser's password")
	port := flags.Int("port", 0, "port of PostgreSQL")
	settings := []string{"max_connections=400", "shared_buffers=256MB", "max_wal_size=4GB"}
	flags.Func("set", "another `setting` of PostgreSQL, such as fsync=off", func(setting string) error {
		settings = append(settings, setting)
		return nil
	})
	var ports devserver.RabbitMQPorts
	flags.Var(&ports, "ports", "the five `ports` of RabbitMQ: AMQP, management, metrics, distribution, port mapper")
	statistics := flags.Duration("statistics", 5*time.Second, "how old RabbitMQ's statistics can be")
	node := flags.String("node", "", "`name` of the RabbitMQ node")
	nodes := flags.String("nodes", "", "`names` of all nodes of its cluster, with commas")
	cookieFile := flags.String("cookie", "", "`file` with what the nodes know each other by")
	vhost := flags.String("name", "", "`name` of the virtual host")
	if err := flags.Parse(args[2:]); err != nil {
		return err
	}
	if verb == "find" {
		return find(server, out)
	}
	password, err := os.ReadFile(*passwordFile)
	if err != nil {
		return fmt.Errorf("read the superuser's password: %w", err)
	}
	postgres := &devserver.Postgres{
		Dir: *dir, Port: *port, Password: strings.TrimSpace(string(password)),
		Settings: settings,
	}
	rabbitmq := &devserver.RabbitMQ{Dir: *dir, Ports: ports, Password: postgres.Password, StatisticsInterval: *statistics, Node: *node}
	if *nodes != "" {
		cookie, err := os.ReadFile(*cookieFile)
		if err != nil {
			return fmt.Errorf("read the nodes' cookie: %w", err)
		}
		rabbitmq.Nodes, rabbitmq.Cookie = strings.Split(*nodes, ","), strings.TrimSpace(string(cookie))
	}
	switch verb + " " + server {
	case "ready postgres":
		return postgres.Ready(ctx)
	case "ready epmd":
		return rabbitmq.PortMapperReady()
	case "ready rabbitmq":
		return rabbitmq.Ready()
	case "vhost rabbitmq":
		if err := rabbitmq.Prepare(); err != nil { // it finds the real folder
			return err
		}
		return rabbitmq.AddVhost(ctx, *vhost)
	case "run postgres":
		if err := postgres.Prepare(ctx); err != nil {
			return err
		}
		return become(postgres.Command())
	case "run rabbitmq":
		if err := rabbitmq.Prepare(); err != nil {
			return err
		}
		return become(rabbitmq.Command())
	case "run epmd":
		if err := rabbitmq.Prepare(); err != nil {
			return err
		}
		return become(rabbitmq.PortMapper())
	}
	return errUsage
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
