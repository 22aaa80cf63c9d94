package api

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/owndata"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

// OwnData is what is held about a person.
type OwnData struct {
	Upkeep *upkeep.Store
	Gates  Gates
}

// Operations are those on own data.
func (h OwnData) Operations() openapi.Operations {
	return openapi.Operations{"readOwnData": {Handler: h.read, Timeout: service.DefaultTimeout}}
}

// read handles GET /reports/mine/data. It takes its turn with searches: votes and
// changes have no index by person, because nobody else asks for them.
func (h OwnData) read(w http.ResponseWriter, r *http.Request) error {
	var answer owndata.Answer
	err := h.Gates.do(r.Context(), r, func(ctx context.Context) (err error) {
		answer, err = h.Upkeep.OwnData(ctx, auth.Must(r).ID)
		return err
	})
	if err != nil {
		return err
	}
	return owndata.Send(w, answer)
}
