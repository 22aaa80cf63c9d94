package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// pollEvery is how often the stack is asked whether it is ready.
const pollEvery = 250 * time.Millisecond

// await returns the ids of the categories as soon as both services answer
// through the gateway. What it says otherwise is meant for a newcomer.
func await(ctx context.Context, stack *client.Client, gateway string, patient time.Duration, out io.Writer) (map[string]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	said := false
	for {
		ids, err := probe(ctx, stack)
		if err == nil {
			return ids, nil
		}
		if !said {
			fmt.Fprintf(out, "Waiting for the stack at %s …\n", gateway)
			said = true
		}
		if wait.For(ctx, pollEvery) != nil {
			return nil, fmt.Errorf("the stack at %s is not ready (%w); start it with `make up`, see `make status`", gateway, err)
		}
	}
}

// probe asks report-service for the categories, and notification-service
// whether it is ready.
func probe(ctx context.Context, stack *client.Client) (map[string]int32, error) {
	ids, err := stack.Categories(ctx)
	if err != nil {
		return nil, err
	}
	return ids, stack.Do(ctx, http.MethodGet, "/readyz", nil, nil)
}

func signInError(err error) error {
	if client.StatusOf(err) == http.StatusNotFound {
		return errors.New("this stack has no development sign-in (AUTH_MODE is not dev), so the demo has no one to sign in as")
	}
	return fmt.Errorf("sign in: %w", err)
}
