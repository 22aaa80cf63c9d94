package testbed

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// startTimeout is how long a program may take to be ready.
const startTimeout = 30 * time.Second

// A Process is a server that runs until it is stopped.
type Process struct {
	*exec.Cmd
	Addr string
}

// Start starts a server on a free port of this machine and returns once ready
// answers. command returns what is run for the address.
func Start(ctx context.Context, command func(addr string) *exec.Cmd, ready func(ctx context.Context, addr string) error) (*Process, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	p := &Process{Addr: listener.Addr().String()}
	_ = listener.Close() // it only had to find a port
	p.Cmd = command(p.Addr)
	p.Stderr = os.Stderr
	if err := p.Cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.Await(ctx, ready); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Await waits until ready answers.
func (p *Process) Await(ctx context.Context, ready func(ctx context.Context, addr string) error) error {
	return wait.Until(ctx, startTimeout, p.Path+" is ready", func(ctx context.Context) (bool, error) {
		return ready(ctx, p.Addr) == nil, nil
	})
}

// Stop ends the process and waits until it has ended.
func (p *Process) Stop() {
	_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = p.Wait()                          // by a signal, so this is an error
}

// Listens is ready when the address takes connections.
func Listens(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// serves is ready when a service takes requests.
func serves(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// A ReportService is report-service as a process of its own, without limits.
type ReportService struct {
	*Process
	secret string // of the tokens that it trusts
}

// ReportService starts a program on a database, until the end.
func (b *Bed) ReportService(ctx context.Context, program, database string) (*ReportService, error) {
	return b.reportService(ctx, program, database, "amqp://127.0.0.1:1/", newKey())
}

// Services starts the programs of both services on a database each and one broker, until
// the end. The first one is returned: the second has no requests.
func (b *Bed) Services(ctx context.Context, report, reports, notification, notifications, broker string) (*ReportService, error) {
	recipients := newKey()
	p, err := Start(ctx, func(addr string) *exec.Cmd {
		return serviceCommand(notification, addr, notifications, broker, recipients, hex.EncodeToString(newKey()))
	}, serves)
	if err != nil {
		return nil, err
	}
	b.Defer(func() error { p.Stop(); return nil })
	return b.reportService(ctx, report, reports, broker, recipients)
}

func (b *Bed) reportService(ctx context.Context, program, database, broker string, recipients []byte) (*ReportService, error) {
	s := &ReportService{secret: hex.EncodeToString(newKey())}
	var err error
	s.Process, err = Start(ctx, func(addr string) *exec.Cmd {
		return serviceCommand(program, addr, database, broker, recipients, s.secret)
	}, serves)
	if err != nil {
		return nil, err
	}
	b.Defer(func() error { s.Stop(); return nil })
	return s, nil
}

// serviceCommand runs a service; recipients is the key that seals them.
func serviceCommand(program, addr, database, broker string, recipients []byte, secret string) *exec.Cmd {
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(),
		"HTTP_ADDR="+addr, "OPERATIONS_ADDR=127.0.0.1:0", "REPORTS_PER_USER=off", "VOTES_PER_USER=off", "DATABASE_URL="+database, "LOG_LEVEL=error",
		"RABBITMQ_URL="+broker, "RECIPIENT_KEY=k1:"+base64.StdEncoding.EncodeToString(recipients),
		"AUTH_MODE=jwt", "AUTH_ISSUER=bench", "AUTH_AUDIENCE=bench", "AUTH_JWT_SECRET="+secret,
		"GUESTS=on", "GUEST_KEY="+hex.EncodeToString(newKey()))
	return cmd
}

// newKey returns 32 random bytes.
func newKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return key
}

// Token signs in a user with a role.
func (s *ReportService) Token(user, role string) (string, error) {
	now := time.Now()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "bench", "aud": "bench", "sub": user, "name": user, "role": role, "jti": uuid.NewString(),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}).SignedString([]byte(s.secret))
}
