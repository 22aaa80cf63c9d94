package schedule_test

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/testing/short"
)

// goZones returns the zones that Go embeds, by name, in a folder that Python
// reads, too.
func goZones(t *testing.T) (dir string, zones map[string][]byte) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	dir, zones = t.TempDir(), make(map[string][]byte)
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, "/") || file.Name == "Factory" {
			continue
		}
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		zones[file.Name] = data
		path := filepath.Join(dir, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, zones
}

// Zones has the names of the zones that Go embeds.
func TestZones(t *testing.T) {
	t.Parallel()
	_, zones := goZones(t)
	var want []string
	for name := range zones {
		want = append(want, name)
	}
	slices.Sort(want)
	if got := schedule.Zones(); !slices.Equal(got, want) {
		t.Errorf("zones.txt has %d names, want the %d of Go's lib/time/zoneinfo.zip", len(got), len(want))
	}
}

// In every zone, on every day from 2020 to 2035 (with -short, to 2023), each time of day is due once, at
// the moment that Python's zoneinfo gives for it.
func TestLocalIsPythons(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	lastYear := short.Count(2023, 2035)
	dir, zones := goZones(t)
	var names []string // the first of those that are the same
	seen := make(map[string]bool)
	for _, name := range schedule.Zones() {
		if data := string(zones[name]); !seen[data] {
			seen[data] = true
			names = append(names, name)
		}
	}
	clocks := []schedule.Clock{0, 150, 1410} // 00:00, 02:30, 23:30: when clocks change
	texts := make([]string, len(clocks))
	for i, c := range clocks {
		texts[i] = c.String()
	}
	cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "moments.py"), "2020", strconv.Itoa(lastYear), strings.Join(texts, ","))
	cmd.Env = append(os.Environ(), "PYTHONTZPATH="+dir)
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	moments := bufio.NewReaderSize(out, 1<<20)
	compared, different := 0, 0
	for _, name := range names {
		zone, err := time.LoadLocationFromTZData(name, zones[name])
		if err != nil {
			t.Fatal(err)
		}
		// From some days before: the first moments are in the year before in UTC.
		last := make([]time.Time, len(clocks))
		for i := range last {
			last[i], _ = schedule.Local{At: clocks[i], Zone: zone}.Next(time.Date(2019, 12, 27, 12, 0, 0, 0, time.UTC))
			for period := ""; period != "2019-12-31"; {
				last[i], period = schedule.Local{At: clocks[i], Zone: zone}.Next(last[i])
			}
		}
		for date := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC); date.Year() <= lastYear; date = date.AddDate(0, 0, 1) {
			for i, clock := range clocks {
				var want int64
				if err := binary.Read(moments, binary.LittleEndian, &want); err != nil {
					t.Fatalf("read Python's answer: %v", err)
				}
				got, period := schedule.Local{At: clock, Zone: zone}.Next(last[i])
				last[i] = got
				compared++
				if got.Unix() != want || period != date.Format(time.DateOnly) {
					if different++; different <= 10 {
						t.Errorf("%s: %s is due at %s for %s, want %s", name, clock, got.UTC(), period, time.Unix(want, 0).UTC())
					}
				}
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("python3: %v", err)
	}
	t.Logf("%d zones, %d moments compared, %d different", len(names), compared, different)
}
