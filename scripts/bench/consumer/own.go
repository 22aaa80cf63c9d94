package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// build compiles our contestant.
func build(ctx context.Context, service, folder string) (string, error) {
	program := filepath.Join(folder, "consumer")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench/consumer")
	cmd.Dir, cmd.Stderr = service, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build notification-service's consumer: %w", err)
	}
	return program, nil
}

// ours lets a program of notification-service's consumer empty the queue into
// database.
func (b *bench) ours(program, database string, args ...string) func(context.Context, string, load) (result, error) {
	return func(ctx context.Context, url string, l load) (r result, err error) {
		cmd := exec.CommandContext(ctx, program, append(args, "-good", strconv.Itoa(l.good()))...)
		cmd.Env = append(os.Environ(), "RABBITMQ_URL="+url, "DATABASE_URL="+database, "RECIPIENT_KEY="+b.key)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return r, fmt.Errorf("run notification-service's consumer: %w", err)
		}
		return r, json.Unmarshal(out, &r)
	}
}
