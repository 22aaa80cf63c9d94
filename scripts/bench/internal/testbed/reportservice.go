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
)

// startTimeout is how long the service may take to be ready.
const startTimeout = 30 * time.Second

// A ReportService is report-service as a process of its own, without a broker
// and without limits.
type ReportService struct {
	Addr   string
	secret []byte
	cmd    *exec.Cmd
}

// StartReportService starts the program, and waits until it is ready.
func StartReportService(ctx context.Context, program, database string) (*ReportService, error) {
	addr, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	s := &ReportService{Addr: addr, secret: []byte(hex.EncodeToString(key))}
	s.cmd = exec.CommandContext(ctx, program)
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.Stderr = os.Stderr
	s.cmd.Env = append(os.Environ(),
		"HTTP_ADDR="+addr, "OPERATIONS_ADDR=127.0.0.1:0", "REPORTS_PER_USER=off", "VOTES_PER_USER=off", "DATABASE_URL="+database, "LOG_LEVEL=error",
		"RABBITMQ_URL=amqp://127.0.0.1:1/", "RECIPIENT_KEY=k1:"+base64.StdEncoding.EncodeToString(key),
		"AUTH_MODE=jwt", "AUTH_ISSUER=bench", "AUTH_AUDIENCE=bench", "AUTH_JWT_SECRET="+string(s.secret))
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start report-service: %w", err)
	}
	return s, s.ready(ctx)
}

func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// ready waits until the service takes requests.
func (s *ReportService) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("report-service does not get ready"), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// PID returns the process's id.
func (s *ReportService) PID() int { return s.cmd.Process.Pid }

// Stop ends the process and waits until it has ended.
func (s *ReportService) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// Token signs in a user with a role.
func (s *ReportService) Token(user, role string) (string, error) {
	now := time.Now()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "bench", "aud": "bench", "sub": user, "name": user, "role": role, "jti": uuid.NewString(),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}).SignedString(s.secret)
}
