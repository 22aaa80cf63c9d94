package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ownServers is how many of the servers are ours: they stand first.
const ownServers = 2

// A server is something that can be started on an address.
type server struct {
	name     string
	command  func(addr string) (*exec.Cmd, error)
	sub, pub string // paths, %s stands for the topic
}

// A process is a server that runs.
type process struct {
	server
	cmd  *exec.Cmd
	addr string
}

// allServers builds and configures what is compared: ours and the hub of an
// earlier revision, if base names its program, or else the peers. Whoever is
// not installed is left out, and said to be.
func allServers(base string) ([]server, func(), error) {
	dir, err := os.MkdirTemp("", "bench-sse")
	if err != nil {
		return nil, nil, err
	}
	cleanup := func() { _ = os.RemoveAll(dir) } // a leftover harms nobody
	hub := filepath.Join(dir, "hub")
	build := exec.Command("go", "build", "-o", hub, "./bench/sse")
	build.Dir = "../../notification-service"
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		cleanup()
		return nil, nil, fmt.Errorf("build hub: %w\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		cleanup()
		return nil, nil, err
	}
	start := func(path string, args ...string) func(string) (*exec.Cmd, error) {
		return func(addr string) (*exec.Cmd, error) {
			return exec.Command(path, append(args, "-addr", addr)...), nil
		}
	}
	if base != "" {
		return []server{
			{"CityConnect", start(hub, "-writer", "shared"), "/sub/%s", "/pub/%s"},
			{"base", start(base, "-writer", "shared"), "/sub/%s", "/pub/%s"},
		}, cleanup, nil
	}
	servers := []server{
		{"CityConnect", start(hub, "-writer", "shared"), "/sub/%s", "/pub/%s"},
		{"CityConnect, net/http", start(hub, "-writer", "per-request"), "/sub/%s", "/pub/%s"},
		{"go-sse v0.11", start(self, "-serve", "gosse"), "/sub/%s", "/pub/%s"},
		{"r3labs/sse v2.10", start(self, "-serve", "r3labs"), "/sub?stream=%s", "/pub/%s"},
	}
	if _, err := os.Stat(nchanModule); err == nil {
		servers = append(servers, server{"Nchan", func(addr string) (*exec.Cmd, error) { return nchan(dir, addr) }, "/sub/%s", "/pub/%s"})
	} else {
		fmt.Println("Nchan is left out: install libnginx-mod-nchan")
	}
	return servers, cleanup, nil
}

const nchanModule = "/usr/lib/nginx/modules/ngx_nchan_module.so"

// nchan returns nginx with two workers, which share one memory.
func nchan(dir, addr string) (*exec.Cmd, error) {
	config := strings.ReplaceAll(`
load_module `+nchanModule+`;
daemon off; pid DIR/nginx.pid; error_log DIR/nginx.log;
worker_processes 2; worker_rlimit_nofile 65536;
events { worker_connections 20000; }
http {
  access_log off; nchan_shared_memory_size 256M;
  client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
  server {
    listen ADDR backlog=4096;
    location ~ ^/sub/(.+)$ { nchan_subscriber eventsource; nchan_channel_id $1; nchan_subscriber_first_message newest; nchan_eventsource_ping_interval 20; }
    location ~ ^/pub/(.+)$ { nchan_publisher http; nchan_channel_id $1; nchan_message_buffer_length 10; }
  }
}`, "DIR", dir)
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(config, "ADDR", addr)), 0o600); err != nil {
		return nil, err
	}
	return exec.Command("nginx", "-c", path, "-p", dir), nil
}

func (s server) start() (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	cmd, err := s.command(addr)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{s, cmd, addr}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close() // it only had to open
			return p, nil
		}
		if time.Now().After(deadline) {
			p.stop()
			return nil, fmt.Errorf("did not start: %w", err)
		}
	}
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = p.cmd.Wait()                          // by a signal, so this is an error
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
