package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/drive"
)

// Options are what the command line says.
type options struct {
	drive.Config
	profile string
	stack   string
	out     string
	insane  bool
}

// parse reads the command line. A profile sets everything at once, so that it
// stands before the flags that change some of it.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	o.use("default")
	flags := flag.NewFlagSet("loadtest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.register(flags)
	if err := flags.Parse(args); err != nil {
		return nil, flag.ErrHelp // the flag set has said what is wrong
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.enlarge()
	given := false
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == "subscribers" })
	if !given { // a small city has no more screens than people
		o.Subscribers = min(o.Subscribers, o.Users)
	}
	o.locate()
	return o, o.Check()
}

// use takes the settings of a profile.
func (o *options) use(profile string) {
	o.Config, o.profile = drive.Profiles[profile], profile
	o.Seed = 1
}

func (o *options) register(flags *flag.FlagSet) {
	names := strings.Join(slices.Sorted(maps.Keys(drive.Profiles)), ", ")
	flags.Func("profile", "`name` of the settings to begin with ("+names+"); stands first", func(name string) error {
		if _, ok := drive.Profiles[name]; !ok {
			return errors.New("must be one of " + names)
		}
		o.use(name)
		return nil
	})
	for _, name := range []string{"insane", "Insane"} {
		flags.BoolVar(&o.insane, name, false, "ten times the residents, the reports of each, the votes for each and the rate, until the limit")
	}
	flags.StringVar(&o.stack, "stack", ".stack", "`folder` of the stack's state: addresses and pid files")
	flags.StringVar(&o.Gateway, "gateway", "", "`address` of the stack (default: as -stack says)")
	flags.StringVar(&o.out, "out", "", "`folder` for the report as text and JSON (default: none)")
	o.registerLoad(flags)
}

// registerLoad registers what a profile sets. The profile may come later than
// the defaults that are printed.
func (o *options) registerLoad(flags *flag.FlagSet) {
	// PowerShell's spelling is accepted beside Go's.
	for _, name := range []string{"users", "Users"} {
		flags.IntVar(&o.Users, name, o.Users, "residents, who file reports and vote")
	}
	flags.IntVar(&o.Subscribers, "subscribers", o.Subscribers, "residents with an open screen")
	flags.IntVar(&o.Officials, "officials", o.Officials, "officials, each with an open screen")
	for _, name := range []string{"reports-per-user", "ReportsPerUser"} {
		flags.IntVar(&o.ReportsPerUser, name, o.ReportsPerUser, "reports that a resident files on average")
	}
	for _, name := range []string{"votes-per-report", "VotesPerReport"} {
		flags.IntVar(&o.VotesPerReport, name, o.VotesPerReport, "votes that a report gets on average")
	}
	flags.IntVar(&o.ChangesPerReport, "status-changes", o.ChangesPerReport, "status changes of a report on average")
	flags.Float64Var(&o.Rate, "rate", o.Rate, "requests in a second, on average")
	flags.IntVar(&o.Workers, "workers", o.Workers, "requests under way at a time, at most")
	flags.IntVar(&o.Hot, "hot", o.Hot, "percent of the votes that go to one report")
	flags.Uint64Var(&o.Seed, "seed", o.Seed, "of everything that is drawn by lot")
	flags.DurationVar(&o.Drain, "drain", o.Drain, "how long to wait for the last notifications")
	flags.DurationVar(&o.Limit, "limit", o.Limit, "how long requests are made, at most; the last notifications are awaited after it")
}

// enlarge makes the load ten times as large in each direction, and ten times as dense,
// whatever flags stand before or behind -insane. No machine takes all of it: the run ends
// at its limit.
func (o *options) enlarge() {
	if o.insane {
		o.Users, o.ReportsPerUser, o.VotesPerReport = 10*o.Users, 10*o.ReportsPerUser, 10*o.VotesPerReport
		o.Rate *= 10
	}
}

// locate fills in what the stack's state knows and the command line does not
// say. Under Compose there are no pid files, and the processes stay unknown.
func (o *options) locate() {
	up := readSettings(filepath.Join(o.stack, "up"))
	if o.Gateway == "" {
		o.Gateway = "http://127.0.0.1:" + cmp.Or(up["GATEWAY_PORT"], "8080")
	}
	port, _ := strconv.Atoi(cmp.Or(up["REPORT_OPERATIONS_PORT"], "3012"))
	replicas, _ := strconv.Atoi(cmp.Or(up["REPLICAS"], "1"))
	for i := range replicas {
		o.ReportMetrics = append(o.ReportMetrics, fmt.Sprintf("http://127.0.0.1:%d/metrics", port+100*i))
	}
	if up["STACK"] == "native" {
		o.PIDs = filepath.Join(o.stack, "native")
	}
}

// readSettings returns lines of NAME=value.
func readSettings(file string) map[string]string {
	data, _ := os.ReadFile(file) //nolint:gosec // without it the defaults hold
	settings := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			settings[name] = value
		}
	}
	return settings
}

// settings are what the report says of the run.
func (o *options) settings() map[string]any {
	return map[string]any{
		"users": o.Users, "subscribers": o.Subscribers, "officials": o.Officials,
		"reports per user": o.ReportsPerUser, "votes per report": o.VotesPerReport, "status changes per report": o.ChangesPerReport,
		"rate": o.Rate, "workers": o.Workers, "hot percent of votes": o.Hot, "seed": o.Seed,
		"replicas of each service": len(o.ReportMetrics),
	}
}
