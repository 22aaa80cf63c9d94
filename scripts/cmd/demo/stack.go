package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/client"
)

// pollEvery is how often the stack is asked whether it is ready.
const pollEvery = 250 * time.Millisecond

// await returns the ids of the categories as soon as both services answer
// through the gateway. What it says otherwise is meant for a newcomer.
func await(ctx context.Context, city *client.Client, gateway string, patient time.Duration, out io.Writer) (map[string]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	said := false
	for {
		ids, err := probe(ctx, city)
		if err == nil {
			return ids, nil
		}
		if !said {
			fmt.Fprintf(out, "Waiting for the stack at %s …\n", gateway)
			said = true
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return nil, fmt.Errorf("the stack at %s is not ready (%w); start it with `make up`, see `make status`", gateway, err)
		}
	}
}

// probe asks report-service for the categories, and notification-service
// whether it is ready.
func probe(ctx context.Context, city *client.Client) (map[string]int32, error) {
	var list struct {
		Categories []struct {
			ID   int32  `json:"id"`
			Name string `json:"name"`
		} `json:"categories"`
	}
	if err := city.Do(ctx, http.MethodGet, "/categories", nil, &list); err != nil {
		return nil, err
	}
	if err := city.Do(ctx, http.MethodGet, "/readyz", nil, nil); err != nil {
		return nil, err
	}
	ids := make(map[string]int32, len(list.Categories))
	for _, c := range list.Categories {
		ids[c.Name] = c.ID
	}
	if ids[otherCategory] == 0 {
		return nil, errors.New("it knows no categories: are its databases migrated?")
	}
	return ids, nil
}

func signInError(err error) error {
	if client.StatusOf(err) == http.StatusNotFound {
		return errors.New("this stack has no development sign-in (AUTH_MODE is not dev), so the demo has no one to sign in as")
	}
	return fmt.Errorf("sign in: %w", err)
}
