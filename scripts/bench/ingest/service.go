package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// startTimeout is how long the service may take to be ready.
const startTimeout = 30 * time.Second

// A service is report-service as a process of its own.
type service struct {
	addr   string
	secret []byte
	cmd    *exec.Cmd
}

// startService starts the program.
func startService(ctx context.Context, program, database string) (*service, error) {
	addr, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	s := &service{addr: addr, secret: []byte(hex.EncodeToString(key))}
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

// withPool sets how many connections the service has to the database; 0 leaves
// it to the service.
func withPool(database string, size int) (string, error) {
	if size == 0 {
		return database, nil
	}
	u, err := url.Parse(database)
	if err != nil {
		return "", fmt.Errorf("parse database URL: %w", err)
	}
	query := u.Query()
	query.Set("pool_max_conns", strconv.Itoa(size))
	u.RawQuery = query.Encode()
	return u.String(), nil
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
func (s *service) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/readyz", http.NoBody)
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

func (s *service) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// token signs in a user.
func (s *service) token(user string) (string, error) {
	now := time.Now()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "bench", "aud": "bench", "sub": user, "name": user, "role": "resident", "jti": uuid.NewString(),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}).SignedString(s.secret)
}
