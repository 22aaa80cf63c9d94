//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

// A request that is answered with 500 is repeated like any other, and breaks the
// promise all the same. 502, 503 and 504 say that something is away, and do not.
func TestErrorsBreakThePromise(t *testing.T) {
	t.Parallel()
	for status, errors := range map[int]int{
		http.StatusInternalServerError: 1, http.StatusBadGateway: 0, http.StatusServiceUnavailable: 0, http.StatusGatewayTimeout: 0,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			town, id := newTown(), uuid.New()
			town.official = &person{owner: city.Officials}
			town.ledger.See(city.Sight{Report: id, Version: 1, Owner: city.Officials, Seen: time.Now()})
			asked := 0
			town.repeat(t.Context(), func(context.Context) error {
				if asked++; asked == 1 {
					return fmt.Errorf("file: %w", &client.Error{Status: status})
				}
				return nil
			})
			versions := map[*report]int64{{id: id, owner: town.official, accepted: 1}: 1}
			town.expectAll(versions)
			s := town.sum(versions)
			if want := fmt.Sprintf(" repeats=1 errors_500=%d ", errors); s.good() != (errors == 0) || !strings.Contains(s.String(), want) {
				t.Errorf("%s, good %t; want%sand good %t", s, s.good(), want, errors == 0)
			}
		})
	}
}
