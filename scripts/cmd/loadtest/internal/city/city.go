// Package city is what the load is made of: incidents with their category,
// place and hour, taken from a city's 311 log where one is given and made up
// otherwise.
package city

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// An Incident is one thing that somebody reports.
type Incident struct {
	Category  string // one of the stack's category names
	Title     string
	Address   string
	Latitude  *float64 // nil, as Longitude is, where the log has no position
	Longitude *float64
	Anonymous bool
}

// A City is an endless supply of incidents, and how they spread over a day.
type City struct {
	incidents []Incident
	// Hours is how many incidents fall into each hour of the day.
	Hours [24]float64
	// Source says in words where the incidents come from.
	Source string
}

// At returns incident number n; after the last one the first comes again.
func (c *City) At(n int) Incident { return c.incidents[n%len(c.incidents)] }

// Len returns the number of different incidents.
func (c *City) Len() int { return len(c.incidents) }

// columns of a 311 log, which its first line names.
var columns = []string{"created_at", "category", "latitude", "longitude", "address", "anonymous"}

// Read takes a city from a 311 log in CSV.
func Read(r io.Reader) (*City, error) {
	rows := csv.NewReader(r)
	head, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("read the heading: %w", err)
	}
	at, err := positions(head)
	if err != nil {
		return nil, err
	}
	c := &City{Source: "311 log"}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		if err := c.add(row, at); err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if c.Len() == 0 {
		return nil, errors.New("the log has no rows")
	}
	return c, nil
}

// positions finds the columns in the heading.
func positions(head []string) (map[string]int, error) {
	at := make(map[string]int)
	for i, name := range head {
		at[name] = i
	}
	for _, name := range columns {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("the heading lacks the column %s", name)
		}
	}
	return at, nil
}

func (c *City) add(row []string, at map[string]int) error {
	get := func(name string) string { return strings.TrimSpace(row[at[name]]) }
	created, err := time.Parse("2006-01-02T15:04:05", get("created_at"))
	if err != nil {
		return fmt.Errorf("created_at: %w", err)
	}
	latitude, err := coordinate(get("latitude"))
	if err != nil {
		return fmt.Errorf("latitude: %w", err)
	}
	longitude, err := coordinate(get("longitude"))
	if err != nil {
		return fmt.Errorf("longitude: %w", err)
	}
	if latitude == nil || longitude == nil {
		latitude, longitude = nil, nil
	}
	c.Hours[created.Hour()]++
	c.incidents = append(c.incidents, Incident{
		Category: categoryOf(get("category")), Title: get("category"), Address: get("address"),
		Latitude: latitude, Longitude: longitude, Anonymous: get("anonymous") == "Y",
	})
	return nil
}

// coordinate returns nil for what the log leaves out.
func coordinate(s string) (*float64, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // a missing position is not an error
	}
	degrees, err := strconv.ParseFloat(s, 64)
	return &degrees, err
}
