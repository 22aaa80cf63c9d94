package schedule

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // containers may have no zones of their own
)

// zoneNames has the names of the zones in time/tzdata, sorted by their bytes. A
// test compares it with Go's own list.
//
//go:embed zones.txt
var zoneNames string

var zones = strings.Fields(zoneNames)

// byName has the names of zones by their folded ones.
var byName = func() map[string]string {
	names := make(map[string]string, len(zones))
	for _, name := range zones {
		names[foldZone(name)] = name
	}
	return names
}()

// foldZone returns what names of the same zone have in common.
func foldZone(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
}

// Zone returns the time zone with a name of the IANA database, such as
// "Asia/Jakarta", in any case and with spaces in the place of underscores; its
// String is the name as the database has it. Unlike time.LoadLocation it takes
// neither "Local", nor the empty name, nor the path of a file.
func Zone(name string) (*time.Location, error) {
	known, ok := byName[foldZone(name)]
	if !ok {
		return nil, fmt.Errorf("must be the name of a time zone such as Asia/Jakarta, got %.40q", name)
	}
	name = known
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("load time zone %s: %w", name, err)
	}
	return zone, nil
}

// Zones returns the names that Zone knows, sorted.
func Zones() []string { return slices.Clone(zones) }
