package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/area"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Areas are the parts of the city, with names in the languages that its residents read.
type Areas struct{ City }

// Operations are those on areas.
func (h Areas) Operations() openapi.Operations {
	return openapi.Operations{
		"listAreas":       {Handler: h.list, Timeout: service.DefaultTimeout},
		"getAreaSettings": {Handler: h.settings, Timeout: service.DefaultTimeout},
		"setAreas":        {Handler: h.set, Timeout: service.DefaultTimeout},
	}
}

// list handles GET /areas.
func (h Areas) list(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Areas.List(r.Context())
	if err != nil {
		return err
	}
	language := h.languageOf(r)
	without := r.URL.Query().Get("geometry") == "none"
	header := w.Header()
	header.Add("Vary", "Accept-Language")
	header.Set("Content-Language", language)
	// Weak: one of both encodings.
	if service.AnsweredBefore(w, r, "W/"+service.Tag(fmt.Appendf(nil, "%d %s %t", list.Revision, language, without))) {
		return nil
	}
	key := fmt.Sprintf("%s %t", language, without)
	body, err := list.Kept(key, func() ([]byte, error) { return h.encode(list, language, without) })
	if err != nil {
		return err
	}
	header.Add("Vary", "Accept-Encoding")
	if service.AcceptsGzip(r) {
		packed, err := list.Kept("gzip "+key, func() ([]byte, error) { return service.Gzip(body), nil })
		if err == nil && packed != nil {
			body = packed
			header.Set("Content-Encoding", "gzip")
		}
	}
	return send(w, "application/geo+json", body)
}

// encode returns the areas in use with their names in language.
func (h Areas) encode(list *area.List, language string, without bool) ([]byte, error) {
	out := reportapi.AreaList{Type: "FeatureCollection", Features: []reportapi.AreaFeature{}}
	var outlines []json.RawMessage
	if !without {
		outlines = list.Outlines()
	}
	for i, a := range list.InUse() {
		feature := reportapi.AreaFeature{Type: "Feature", Properties: reportapi.AreaProperties{Code: a.Code, Name: a.Name(append([]string{language}, h.Languages...)...)}}
		if !without {
			feature.Geometry = multiPolygon(outlines[i])
		}
		out.Features = append(out.Features, feature)
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode areas: %w", err)
	}
	return body, nil
}

// settings handles GET /reports/areas.
func (h Areas) settings(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Areas.List(r.Context())
	if err != nil {
		return err
	}
	return h.answer(r.Context(), w, list, r.URL.Query().Get("geometry") == "none", 0)
}

func (h Areas) answer(ctx context.Context, w http.ResponseWriter, list *area.List, without bool, leftOut int) error {
	located, err := h.Areas.Located(ctx)
	if err != nil {
		return err
	}
	out := reportapi.AreaSettings{Type: "FeatureCollection", Languages: h.Languages, Located: located, LeftOut: int32(leftOut), Features: make([]reportapi.AreaSetting, len(list.InUse()))}
	for i, a := range list.InUse() {
		out.Features[i] = areaSetting(a)
		if without {
			out.Features[i].Geometry = nil
		}
	}
	w.Header().Set("ETag", report.ETag(list.Revision))
	w.Header().Set("Cache-Control", "no-store")
	body, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("encode areas: %w", err)
	}
	return send(w, "application/geo+json", body)
}

func areaSetting(a area.Area) reportapi.AreaSetting {
	return reportapi.AreaSetting{Type: "Feature", Properties: reportapi.AreaNames{Code: a.Code, Names: a.Names}, Geometry: multiPolygon(a.Coordinates())}
}

// set handles PUT /reports/areas.
func (h Areas) set(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read areas: %w", err)
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // a byte order mark, as some programs write
	if !utf8.Valid(body) || !json.Valid(body) {
		return service.MalformedBody.New("the file must be JSON in UTF-8")
	}
	parsed, leftOut, err := h.read(body, "")
	if err != nil {
		return err
	}
	stored, err := h.Areas.Replace(r.Context(), parsed, ifMatch(r), user(r).AsOfficial())
	if err != nil {
		return err
	}
	return h.answer(r.Context(), w, stored, true, leftOut)
}

// read returns the areas of a file that is at a pointer of a request.
func (h Areas) read(file []byte, pointer string) (areas []area.Area, leftOut int, err error) {
	areas, leftOut, faults := area.Parse(file, h.Languages)
	if len(faults) > 0 {
		for i := range faults {
			faults[i].Pointer = pointer + faults[i].Pointer
		}
		return nil, 0, service.InvalidInput.New("the areas stay as they were", faults...)
	}
	return areas, leftOut, nil
}

// multiPolygon returns the geometry with the coordinates.
func multiPolygon(coordinates json.RawMessage) json.RawMessage {
	return fmt.Appendf(nil, `{"type":"MultiPolygon","coordinates":%s}`, coordinates)
}
