package api

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/owndata"
	"github.com/cityconnect/cityconnect/platform/service"
)

// readOwnData handles GET /reports/mine/data. It takes its turn with searches: votes and
// changes have no index by person, because nobody else asks for them.
func readOwnData(read func(ctx context.Context, userID string) (owndata.Answer, error), g gates) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		var answer owndata.Answer
		err := g.do(r.Context(), r, func(ctx context.Context) (err error) {
			answer, err = read(ctx, auth.Must(r).ID)
			return err
		})
		if err != nil {
			return err
		}
		return owndata.Send(w, answer)
	}
}
