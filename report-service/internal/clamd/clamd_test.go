package clamd_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/clamd"
)

// eicar is what every scanner finds, and what harms nobody. In two parts, so that
// none finds it here.
var eicar = []byte(`X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-` + `STANDARD-ANTIVIRUS-TEST-FILE!$H+H*`)

// start runs a clamd that knows one signature, if there is one on this machine.
func start(t *testing.T) *clamd.Scanner {
	t.Helper()
	program, err := exec.LookPath("clamd")
	if err != nil {
		t.Skip("there is no clamd here: apt-get install clamav-daemon")
	}
	dir := t.TempDir()
	signature := fmt.Sprintf("Eicar-Test:0:*:%x\n", eicar)
	socket := filepath.Join(dir, "s")
	config := fmt.Sprintf("DatabaseDirectory %s\nLocalSocket %s\nForeground yes\nTemporaryDirectory %s\n", dir, socket, dir)
	for name, content := range map[string]string{"test.ndb": signature, "clamd.conf": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	cmd := exec.Command(program, "--config-file="+filepath.Join(dir, "clamd.conf"))
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("clamd:\n%s", log.String())
		}
	})
	s, err := clamd.New("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "clamd answers", func() bool { return s.Check(t.Context()) == nil })
	return s
}

func TestClamd(t *testing.T) {
	t.Parallel()
	s := start(t)
	large := append(make([]byte, 12<<20), eicar...)
	for _, tt := range []struct {
		name string
		file []byte
		want bool
	}{
		{"clean", []byte("a picture"), false},
		{"virus", eicar, true},
		{"virus at the end of 12 MiB", large, true},
	} {
		if got, err := s.Infected(t.Context(), tt.file); err != nil || got != tt.want {
			t.Errorf("%s: infected %v, error %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

// A wrong answer is not a verdict: a file that clamd could not read is neither clean
// nor infected.
func TestNoVerdict(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"an error": "INSTREAM size limit exceeded. ERROR\x00", "nothing": "", "half an answer": "stream: OK", "another": "OK\x00",
		"endless": strings.Repeat("x", 100_000),
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 100))
				_, _ = conn.Write([]byte(answer))
				_ = conn.Close()
			}
		}()
		s, err := clamd.New("tcp://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if infected, err := s.Infected(t.Context(), []byte("a picture")); err == nil || infected {
			t.Errorf("%s: infected %v, error %v; want an error", name, infected, err)
		}
	}
	s, err := clamd.New("tcp://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Infected(t.Context(), []byte("a picture")); err == nil {
		t.Error("nobody listens, and there is a verdict")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Infected(ended, nil); err == nil {
		t.Error("the context has ended, and there is a verdict")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "clamd:3310", "tcp://clamd", "http://clamd:3310", "unix://clamd.ctl", "tcp://%zz"} {
		if _, err := clamd.New(url); err == nil {
			t.Errorf("New %q succeeded", url)
		}
	}
}
