package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/asset"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// maxAssets is how many things a map shows.
const maxAssets = 200

// Assets are the things of the city that people report.
type Assets struct {
	City
	Store *postgres.Assets
}

// Operations are those on things.
func (h Assets) Operations() openapi.Operations {
	return openapi.Operations{
		"listAssets":      {Handler: answered(h.list), Timeout: service.DefaultTimeout},
		"listAssetLayers": {Handler: answered(h.layers), Timeout: service.DefaultTimeout},
		"setAssets":       {Handler: answered(h.set), Timeout: service.Unlimited}, // as long as the client sends
		"printAssets":     {Handler: h.print, Timeout: service.DefaultTimeout},
	}
}

// list handles GET /map/assets.
func (h Assets) list(r *http.Request) (out reportapi.AssetList, err error) {
	var found []report.PlacedAsset
	query := r.URL.Query()
	switch {
	case query.Has("asset") && !query.Has("bbox"):
		found, err = h.Store.Named(r.Context(), query.Get("asset"))
	case query.Has("bbox") && !query.Has("asset"):
		box := checked(report.ParseBox, query.Get("bbox"))
		if box.West > box.East {
			return out, fault.NewInvalid("bbox", "must not span the antimeridian")
		}
		found, out.More, err = h.Store.In(r.Context(), *box, maxAssets)
	default:
		return out, fault.NewInvalid("bbox", "must be there, or else asset")
	}
	out.Assets = service.Each(found, assetOf)
	return out, err
}

func assetOf(a report.PlacedAsset) reportapi.Asset {
	out := reportapi.Asset{
		Asset: a.Key, Name: a.Name, CategoryID: a.Category, Latitude: a.Position.Latitude, Longitude: a.Position.Longitude,
	}
	if o := a.Open; o != nil {
		out.Report = &reportapi.AssetReport{ID: o.ID, Title: o.Title, Status: reportapi.Status(o.Status), CreatedAt: o.CreatedAt}
		out.Report.Photo = append(o.Photos, uuid.Nil)[0]
	}
	return out
}

// layers handles GET /reports/assets.
func (h Assets) layers(r *http.Request) (reportapi.AssetLayers, error) {
	layers, err := h.Store.Layers(r.Context())
	return reportapi.AssetLayers{Layers: service.Each(layers, func(l report.AssetLayer) reportapi.AssetLayer {
		return reportapi.AssetLayer{Layer: l.Name, CategoryID: l.Category, Count: l.Count, ChangedAt: l.ChangedAt}
	})}, err
}

// print handles GET /reports/assets/{layer}/sheet.
func (h Assets) print(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	things, err := h.Store.Page(r.Context(), r.PathValue("layer"), query["code"], query.Get("after"), asset.SheetSize+1)
	switch {
	case err != nil:
		return err
	case len(things) == 0:
		return fault.New(fault.NotFound, "there is no such thing in the layer")
	case len(things) > asset.SheetSize:
		things = things[:asset.SheetSize]
		_, last, _ := strings.Cut(things[len(things)-1].Key, "/")
		w.Header().Set("Link", fmt.Sprintf(`<%s?after=%s>; rel="next"`, r.URL.Path, last))
	}
	sheet, err := asset.Sheet(h.Name, origin(r), things)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return send(w, "image/svg+xml", sheet)
}

// set handles PUT /reports/assets/{layer}.
func (h Assets) set(r *http.Request) (reportapi.AssetUpload, error) {
	category, err := h.Categories.Category(r.Context(), int32Of(r.URL.Query().Get("category")))
	switch {
	case fault.KindOf(err) == fault.Invalid:
		return reportapi.AssetUpload{}, fault.NewInvalid("category", "there is no such category")
	case err != nil:
		return reportapi.AssetUpload{}, err
	}
	things, faults, err := asset.Read(r.Body, strings.HasPrefix(r.Header.Get("Content-Type"), "text/csv"), h.Bounds)
	if err != nil {
		return reportapi.AssetUpload{}, err
	}
	if len(faults) > 0 {
		return reportapi.AssetUpload{}, service.InvalidInput.New("the things stay as they were", faults...)
	}
	layer := r.PathValue("layer")
	changed, err := h.Store.Replace(r.Context(), layer, category.ID, things, user(r).AsOfficial())
	return reportapi.AssetUpload{
		Layer: layer, CategoryID: category.ID, Count: changed.Count, Added: changed.Added, Changed: changed.Changed, Removed: changed.Removed,
	}, err
}
