package service

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthcheckTimeout is above what /readyz takes while the database is away.
const healthcheckTimeout = 4 * time.Second

// Healthcheck reports whether the service that listens on addr, the value of
// HTTP_ADDR, is ready. Images without a shell have no other program for that.
func Healthcheck(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("HTTP_ADDR: must be an address and a port, such as 127.0.0.1:3002")
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "localhost"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", res.Status)
	}
	return nil
}
