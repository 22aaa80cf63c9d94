// Package helm tests the chart by what it renders. With -update, the files in
// testdata and the variables in values.schema.json are written again.
package helm

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what is compared")

// An object is one of those that the chart makes.
type object map[string]any

// at returns what is at a path, or nil.
func (o object) at(path ...string) any {
	var value any = map[string]any(o)
	for _, key := range path {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	return value
}

func (o object) kind() string { return fmt.Sprint(o["kind"]) }
func (o object) name() string { return fmt.Sprint(o.at("metadata", "name")) }

// pod returns the template of the pods that o makes, or nil.
func (o object) pod() object {
	switch o.kind() {
	case "Deployment", "Job":
		pod, _ := o.at("spec", "template", "spec").(map[string]any)
		return pod
	case "Pod":
		pod, _ := o.at("spec").(map[string]any)
		return pod
	}
	return nil
}

// container returns the one container of the pods that o makes.
func (o object) container() object {
	c, _ := o.pod()["containers"].([]any)[0].(map[string]any)
	return c
}

// env returns the environment of a container.
func (o object) env() map[string]string {
	env := make(map[string]string)
	for _, variable := range o["env"].([]any) {
		v := object(variable.(map[string]any))
		env[fmt.Sprint(v["name"])] = fmt.Sprint(v["value"])
	}
	return env
}

// render returns what the chart makes of the values in a file of ci, changed by
// further YAML: the objects, and their text.
func render(t *testing.T, file, change string) ([]object, string, error) {
	t.Helper()
	chart, err := loader.Load("cityconnect")
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ReadValuesFile(filepath.Join("cityconnect/ci", file))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := chartutil.ReadValues([]byte(change))
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "city", Namespace: "city", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, chartutil.CoalesceTables(changes, values), release, nil)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, "", err
	}
	var objects []object
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		for document := range strings.SplitSeq(files[path], "\n---") {
			var o object
			if strings.HasSuffix(path, ".yaml") {
				if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
					t.Fatalf("%s: %v\n%s", path, err, document)
				}
			}
			if len(o) > 0 {
				objects = append(objects, o)
				fmt.Fprintf(&text, "---\n# %s\n%s\n", path, strings.Trim(strings.TrimPrefix(document, "---"), "\n"))
			}
		}
	}
	return objects, text.String(), nil
}

// each runs a test for each set of values.
func each(t *testing.T, test func(t *testing.T, objects []object)) {
	t.Helper()
	files, err := filepath.Glob("cityconnect/ci/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d sets of values, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			objects, _, err := render(t, filepath.Base(file), "")
			if err != nil {
				t.Fatal(err)
			}
			test(t, objects)
		})
	}
}

// The profile "restricted" asks for this, and the project for some more.
func TestPods(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, objects []object) {
		pods := 0
		for _, o := range objects {
			pod := o.pod()
			if pod == nil {
				continue
			}
			pods++
			if pod["automountServiceAccountToken"] != false || pod["enableServiceLinks"] != false {
				t.Errorf("%s %s has a token of the cluster, or the names of its neighbours", o.kind(), o.name())
			}
			if pod.at("securityContext", "runAsNonRoot") != true || pod.at("securityContext", "seccompProfile", "type") != "RuntimeDefault" {
				t.Errorf("%s %s: security of the pod %v", o.kind(), o.name(), pod["securityContext"])
			}
			for _, c := range pod["containers"].([]any) {
				c := object(c.(map[string]any))
				if c.at("securityContext", "allowPrivilegeEscalation") != false || c.at("securityContext", "readOnlyRootFilesystem") != true ||
					fmt.Sprint(c.at("securityContext", "capabilities", "drop")) != "[ALL]" {
					t.Errorf("%s %s: security of %v %v", o.kind(), o.name(), c["name"], c["securityContext"])
				}
				if c.at("resources", "limits", "memory") == nil || c.at("resources", "requests", "cpu") == nil || c.at("resources", "limits", "cpu") != nil {
					t.Errorf("%s %s: resources of %v %v, want a limit of memory and none of processors", o.kind(), o.name(), c["name"], c["resources"])
				}
				if image := fmt.Sprint(c["image"]); strings.HasSuffix(image, ":") || strings.HasSuffix(image, ":latest") || !strings.Contains(image, ":") {
					t.Errorf("%s %s: image %s", o.kind(), o.name(), image)
				}
			}
		}
		if pods < 2 {
			t.Errorf("%d kinds of pods", pods)
		}
	})
}

// A Deployment adds a replica before it takes one away, has a budget, and its
// pods have the time to drain.
func TestRollouts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, objects []object) {
		for _, o := range objects {
			if o.kind() != "Deployment" {
				continue
			}
			if o.at("spec", "strategy", "rollingUpdate", "maxUnavailable") != float64(0) {
				t.Errorf("%s: strategy %v", o.name(), o.at("spec", "strategy"))
			}
			c := o.container()
			if c.at("lifecycle", "preStop", "sleep") == nil || c["readinessProbe"] == nil || c["livenessProbe"] == nil {
				t.Errorf("%s: no sleep before it ends, or no probes", o.name())
			}
			budget := slices.ContainsFunc(objects, func(b object) bool {
				return b.kind() == "PodDisruptionBudget" && fmt.Sprint(b.at("spec", "selector")) == fmt.Sprint(o.at("spec", "selector"))
			})
			if !budget {
				t.Errorf("%s has no PodDisruptionBudget", o.name())
			}
			scaled := slices.ContainsFunc(objects, func(s object) bool { return s.at("spec", "scaleTargetRef", "name") == o.name() })
			if has := o.at("spec", "replicas") != nil; has == scaled {
				t.Errorf("%s: has a number of replicas: %t, is scaled: %t; want one of the two", o.name(), has, scaled)
			}
		}
	})
}

// No template makes a secret, no name is used twice, and what the objects name
// of each other is there.
func TestObjectsFitTogether(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, objects []object) {
		names := make(map[string]bool)
		for _, o := range objects {
			key := o.kind() + " " + o.name()
			if names[key] {
				t.Errorf("%s is there twice", key)
			}
			names[key] = true
		}
		for _, o := range objects {
			switch o.kind() {
			case "Secret":
				t.Errorf("secret %s is made by a template, and would change with each upgrade", o.name())
			case "HorizontalPodAutoscaler", "ScaledObject":
				if target := fmt.Sprint(o.at("spec", "scaleTargetRef", "name")); !names["Deployment "+target] {
					t.Errorf("%s %s scales %s, which is not there", o.kind(), o.name(), target)
				}
			case "Service", "PodDisruptionBudget", "NetworkPolicy":
				if !names["Deployment "+o.name()] && o.name() != "city-migrate" {
					t.Errorf("%s %s belongs to no Deployment", o.kind(), o.name())
				}
			}
		}
	})
}

// A pod has the time for what the program does before it ends: sleep until nobody
// asks, tell the streams, and finish what is in hand. The times are those of the
// sources.
func TestTimeToDrain(t *testing.T) {
	t.Parallel()
	shutdown := duration(t, "../../platform/service/serve.go", `shutdownTimeout = (\d+) \* time.Second`) +
		duration(t, "../../platform/consumer/subscription.go", `drainGrace = (\d+) \* time.Second`)
	write := duration(t, "../../notification-service/internal/sse/config.go", `WriteTimeout time.Duration .envDefault:"(\d+)s"`)
	for _, drain := range []int{0, 20, 300} {
		objects, _, err := render(t, "minimal.yaml", fmt.Sprintf("drainSeconds: %d", drain))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.kind() != "Deployment" {
				continue
			}
			c := o.container()
			sleep, _ := c.at("lifecycle", "preStop", "sleep", "seconds").(float64)
			grace, _ := o.pod()["terminationGracePeriodSeconds"].(float64)
			need := time.Duration(sleep+float64(drain))*time.Second + write + shutdown
			if sleep < 3 || time.Duration(grace)*time.Second <= need {
				t.Errorf("%s: sleeps %v s and has %v s in all, want some seconds, and more than %s", o.name(), sleep, grace, need)
			}
			if got, want := c.env()["DRAIN_WINDOW"], fmt.Sprintf("%ds", drain); o.name() == "city-notification" && got != want {
				t.Errorf("DRAIN_WINDOW is %q, want %q", got, want)
			}
		}
	}
}

// duration returns the seconds that a file has at a pattern.
func duration(t *testing.T, file, pattern string) time.Duration {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
	if found == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	seconds, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds) * time.Second
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Variables that the chart sets itself, and those that only a secret may have.
var (
	ofTheChart = []string{"HTTP_ADDR", "OPERATIONS_ADDR", "PHOTO_STORE", "DRAIN_WINDOW", "REPORT_SERVICE_URL"}
	secret     = []string{
		"AUTH_JWT_SECRET", "DATABASE_URL", "GUEST_KEY", "MAIL_BOUNCE_SECRET", "MAIL_DKIM_KEY", "MAIL_URL", "PHOTO_S3_ACCESS_KEY",
		"PHOTO_S3_SECRET_KEY", "PUSH_VAPID_KEY", "RABBITMQ_MANAGEMENT_URL", "RABBITMQ_URL", "RECIPIENT_KEY",
	}
)

// Every variable of docs/configuration.md, which other tests hold together with
// the programs, can be given to the chart, as a value or as a secret, and no
// other; and .env.example names none besides.
func TestVariables(t *testing.T) {
	t.Parallel()
	var want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z0-9_]+)` \\|").FindAllStringSubmatch(read(t, "../../docs/configuration.md"), -1) {
		if name := row[1]; !strings.HasPrefix(name, "GATEWAY_") && !slices.Contains(ofTheChart, name) && !slices.Contains(secret, name) {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if len(want) < 50 {
		t.Fatalf("the manual has %d variables", len(want))
	}

	const file = "cityconnect/values.schema.json"
	var schema struct {
		Definitions struct {
			Environment struct {
				Properties map[string]struct{} `json:"properties"`
			} `json:"environment"`
			SecretFiles struct {
				Items struct {
					Enum []string `json:"enum"`
				} `json:"items"`
			} `json:"secretFiles"`
		} `json:"definitions"`
	}
	text := read(t, file)
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	properties := schema.Definitions.Environment.Properties
	for _, name := range want {
		if _, found := properties[name]; !found && !*update {
			t.Errorf("%s does not have %s; run the tests with -update", file, name)
		}
		delete(properties, name)
	}
	if len(properties) > 0 && !*update {
		t.Errorf("%s has %v, of which the manual knows nothing; run the tests with -update", file, slices.Sorted(maps.Keys(properties)))
	}
	if *update {
		lines := regexp.MustCompile(`( +"[A-Z0-9_]+": \{"\$ref": "#/definitions/value"\},?\n)+`)
		with := ""
		for _, name := range want {
			with += fmt.Sprintf("        %q: {\"$ref\": \"#/definitions/value\"},\n", name)
		}
		if err := os.WriteFile(file, []byte(lines.ReplaceAllLiteralString(text, strings.TrimSuffix(with, ",\n")+"\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(schema.Definitions.SecretFiles.Items.Enum, secret) {
		t.Errorf("%s has the secrets %v, want %v", file, schema.Definitions.SecretFiles.Items.Enum, secret)
	}

	// The sections of the stack itself come before those of the programs.
	_, programs, found := strings.Cut(read(t, "../../.env.example"), "# Your own identity provider")
	if !found {
		t.Fatal(".env.example has no section of the identity provider")
	}
	for _, line := range regexp.MustCompile(`(?m)^#([A-Z][A-Z0-9_]+)=`).FindAllStringSubmatch(programs, -1) {
		known := slices.Concat(want, ofTheChart, secret)
		if !slices.Contains(known, line[1]) && !slices.Contains(known, strings.TrimSuffix(line[1], "_FILE")) {
			t.Errorf(".env.example has %s, which the chart does not know", line[1])
		}
	}
}

// The gateway gets all that its template asks for, and all that the manual has.
func TestGatewayVariables(t *testing.T) {
	t.Parallel()
	objects, _, err := render(t, "minimal.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	var env map[string]string
	for _, o := range objects {
		if o.kind() == "Deployment" && o.name() == "city-gateway" {
			env = o.container().env()
		}
	}
	for file, pattern := range map[string]string{
		"cityconnect/files/gateway.conf.template": `\$\{(GATEWAY_[A-Z_]+)\}`,
		"../../docs/configuration.md":             "(?m)^\\| `(GATEWAY_[A-Z_]+)` \\|",
	} {
		used := regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1)
		if len(used) < 5 {
			t.Errorf("%s has %d variables", file, len(used))
		}
		for _, name := range used {
			if _, found := env[name[1]]; !found {
				t.Errorf("%s has %s, which the gateway is not told", file, name[1])
			}
		}
	}
}

// Every queue that messages wait in counts for the part that empties it, and for
// no other.
func TestScaledQueues(t *testing.T) {
	t.Parallel()
	const change = "{report: {autoscaling: {enabled: false}}, delivery: {autoscaling: {enabled: true}}}"
	objects, _, err := render(t, "everything.yaml", change)
	if err != nil {
		t.Fatal(err)
	}
	patterns := make(map[string]*regexp.Regexp)
	for _, o := range objects {
		if o.kind() != "ScaledObject" {
			continue
		}
		metadata := object(o.at("spec", "triggers").([]any)[0].(map[string]any)).at("metadata")
		patterns[o.name()] = regexp.MustCompile(fmt.Sprint(object(metadata.(map[string]any))["queueName"]))
	}
	queues := map[string]string{"queue.webhooks": "city-delivery"}
	for _, found := range regexp.MustCompile(`"(queue\.[a-z_]+)"`).FindAllStringSubmatch(read(t, "../../platform/event/event.go"), -1) {
		queues[found[1]] = "city-notification"
	}
	queues["queue.photo_checks"] = "city-photo"
	if len(patterns) != 3 || len(queues) < 7 {
		t.Fatalf("%d are scaled by %d queues", len(patterns), len(queues))
	}
	for queue, want := range queues {
		for name, pattern := range patterns {
			if got := pattern.MatchString("bandung." + queue); got != (name == want) {
				t.Errorf("%s counts for %s: %t, it belongs to %s", queue, name, got, want)
			}
			if pattern.MatchString(queue) || pattern.MatchString("bandung."+queue+".dlq") {
				t.Errorf("%s counts queues of another city, or dead letters", name)
			}
		}
	}
}

// Only delivery-worker may go anywhere; what decodes the uploads of strangers
// reaches nothing but its own servers.
func TestWaysOut(t *testing.T) {
	t.Parallel()
	objects, _, err := render(t, "everything.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"city-report":       "53 5432 5672 15672 443 443",
		"city-notification": "53 5432 5672 15672 443 443",
		"city-photo":        "53 5432 5672 15672 443 3310",
		"city-delivery":     "anywhere",
		"city-gateway":      "53 3003 3002",
		"city-migrate":      "53 5432",
	}
	for _, o := range objects {
		if o.kind() != "NetworkPolicy" {
			continue
		}
		var got []string
		for _, rule := range o.at("spec", "egress").([]any) {
			rule := object(rule.(map[string]any))
			if len(rule) == 0 {
				got = append(got, "anywhere")
				continue
			}
			for _, port := range rule["ports"].([]any) {
				port := object(port.(map[string]any))
				if fmt.Sprint(port["protocol"]) != "UDP" {
					got = append(got, fmt.Sprint(port["port"]))
				}
			}
			if rule["to"] == nil && !strings.HasPrefix(fmt.Sprint(rule["ports"]), "[map[port:53 ") {
				t.Errorf("%s may go to every address at %v", o.name(), rule["ports"])
			}
		}
		if got := strings.Join(got, " "); got != want[o.name()] {
			t.Errorf("%s may go to %s, want %s", o.name(), got, want[o.name()])
		}
		delete(want, o.name())
	}
	if len(want) > 0 {
		t.Errorf("no policy for %v", slices.Sorted(maps.Keys(want)))
	}
}

// delivery-worker asks report-service, which takes requests of it and of the gateway.
func TestDeliveryAsksReports(t *testing.T) {
	t.Parallel()
	objects, _, err := render(t, "everything.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		switch {
		case o.kind() == "Deployment" && o.name() == "city-delivery":
			if got := o.container().env()["REPORT_SERVICE_URL"]; got != "http://city-report:3002" {
				t.Errorf("REPORT_SERVICE_URL is %q", got)
			}
		case o.kind() == "NetworkPolicy" && o.name() == "city-report":
			rule := fmt.Sprint(o.at("spec", "ingress").([]any)[0])
			for _, part := range []string{"gateway", "delivery"} {
				if !strings.Contains(rule, "app.kubernetes.io/component:"+part) {
					t.Errorf("%s may not ask report-service: %s", part, rule)
				}
			}
		}
	}
}

// The chart takes the values of the manual, and mounts the map that they name.
func TestValuesOfTheManual(t *testing.T) {
	t.Parallel()
	_, values, _ := strings.Cut(read(t, "../../docs/kubernetes.md"), "```yaml\n")
	values, _, found := strings.Cut(values, "```")
	if !found {
		t.Fatal("kubernetes.md has no block of values")
	}
	objects, _, err := render(t, "minimal.yaml", values)
	if err != nil {
		t.Fatal(err)
	}
	programs := 0
	for _, o := range objects {
		if o.kind() == "Deployment" {
			programs++
		}
	}
	if programs != 5 {
		t.Errorf("the values make %d deployments, must make four programs and the gateway", programs)
	}
}

// The manual of backups names every secret that is not the address of a server.
func TestEverySecretHasARowInTheManual(t *testing.T) {
	t.Parallel()
	_, rows, _ := strings.Cut(read(t, "../../docs/backup.md"), "## Secrets\n")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for _, name := range secret {
		if !slices.Contains([]string{"DATABASE_URL", "RABBITMQ_URL", "RABBITMQ_MANAGEMENT_URL"}, name) && !strings.Contains(rows, "`"+name+"`") {
			t.Errorf("backup.md has no row for %s", name)
		}
	}
}

// A missing or wrong value stops the rendering, and is named.
func TestWrongValues(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		`image: {registry: ""}`:                                            "/image/registry",
		`config: {AUTH_ISSUER: ""}`:                                        "config.AUTH_ISSUER",
		`config: {AUTH_AUDIENCE: ""}`:                                      "config.AUTH_AUDIENCE",
		`report: {existingSecret: ""}`:                                     "report.existingSecret",
		`notification: {existingSecret: ""}`:                               "notification.existingSecret",
		`photos: {volume: {enabled: true}}`:                                "photo.existingSecret",
		`migrations: {existingSecret: ""}`:                                 "migrations.existingSecret",
		`gateway: {tlsSecret: ""}`:                                         "gateway.tlsSecret",
		`report: {replicas: many}`:                                         "/report/replicas",
		`report: {replica: 3}`:                                             "'replica'",
		`config: {LOG_LEVLE: debug}`:                                       "LOG_LEVLE",
		`notification: {config: {DATABASE_URL: "postgres://"}}`:            "DATABASE_URL",
		`report: {secretFiles: [DATABASE_PASSWORD]}`:                       "/report/secretFiles",
		`migrations: {mode: later}`:                                        "/migrations/mode",
		`drainSeconds: 20s`:                                                "/drainSeconds",
		`photos: {store: /srv/photos}`:                                     "/photos/store",
		`{photo: {existingSecret: photo}, photos: {store: "s3://photos"}}`: "networkPolicy.photoStore.to",
		`{photo: {existingSecret: photo}, networkPolicy: {enabled: false}, photos: {store: "s3://photos", volume: {enabled: true}}}`: "photos.volume.enabled",
		`report: {autoscaling: {enabled: true, min: 9}}`:                        "report.autoscaling",
		`httpRoute: {enabled: true}`:                                            "httpRoute.parentRefs",
		`ingress: {enabled: true}`:                                              "ingress.host",
		`{httpRoute: {enabled: true}, gateway: {enabled: false}}`:               "gateway.enabled",
		`{notification: {autoscaling: {enabled: true}}, keda: {enabled: true}}`: "keda.authentication",
	} {
		if _, _, err := render(t, "minimal.yaml", change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that names %s", change, err, want)
		}
	}
}

// A number of any size arrives as it was written.
func TestNumbers(t *testing.T) {
	t.Parallel()
	objects, _, err := render(t, "minimal.yaml", "notification: {config: {DELAY_MAX: 10000000, RELAY_RETENTION: 72h, WEBHOOK_ALLOW_HTTP: true}}")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.kind() == "Deployment" && o.name() == "city-notification" {
			env := o.container().env()
			if env["DELAY_MAX"] != "10000000" || env["RELAY_RETENTION"] != "72h" || env["WEBHOOK_ALLOW_HTTP"] != "true" {
				t.Errorf("environment %v", env)
			}
		}
	}
}

// The rendered objects are in testdata, so that a change of the chart shows what it
// changes.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("cityconnect/ci/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		_, got, err := render(t, filepath.Base(file), "")
		if err != nil {
			t.Fatal(err)
		}
		// The gateway's files and the alerts are copies, as TestCopiedFiles says.
		got = regexp.MustCompile(`(?m)^(  (nginx\.conf|gateway\.conf\.template): \|)\n((    .*)?\n)+`).ReplaceAllString(got, "$1 …\n")
		got = regexp.MustCompile(`(?ms)(^kind: PrometheusRule$.*?^spec:\n).*?(^---\n|\z)`).ReplaceAllString(got, "$1  …\n$2")
		got = regexp.MustCompile(`checksum/config: [0-9a-f]+`).ReplaceAllString(got, "checksum/config: …")
		golden := filepath.Join("testdata", filepath.Base(file))
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want := read(t, golden); got != want {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			line := strings.Count(got[:at], "\n") + 1
			t.Errorf("%s is rendered otherwise than line %d of %s has it; look at git diff after running the tests with -update", file, line, golden)
		}
	}
}

// The rules of Prometheus name jobs, and those that the PodMonitor makes are the
// names of containers: each program's own.
func TestAlertsNameJobs(t *testing.T) {
	t.Parallel()
	objects, _, err := render(t, "everything.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	programs := make(map[string]bool)
	var monitor, rule object
	for _, o := range objects {
		switch o.kind() {
		case "Deployment":
			programs[fmt.Sprint(o.container()["name"])] = true
		case "PodMonitor":
			monitor = o
		case "PrometheusRule":
			rule = o
		}
	}
	endpoint, _ := monitor.at("spec", "podMetricsEndpoints").([]any)
	if len(endpoint) != 1 || !strings.Contains(fmt.Sprint(endpoint), "map[sourceLabels:[__meta_kubernetes_pod_container_name] targetLabel:job]") {
		t.Errorf("the PodMonitor has %v, must make a job of the container's name", endpoint)
	}
	text := fmt.Sprint(rule.at("spec", "groups"))
	jobs := 0
	for _, found := range regexp.MustCompile(`job=~?"([^"]+)"`).FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(found[1], "|") {
			jobs++
			if !programs[name] {
				t.Errorf("the rules name the job %s, and no container is called so", name)
			}
		}
	}
	if jobs < 6 {
		t.Errorf("the rules name %d jobs, must name 6 or more", jobs)
	}
}

// The chart cannot read what is outside of it. Its copies are those that Compose
// and the native stack use.
func TestCopiedFiles(t *testing.T) {
	t.Parallel()
	for copied, original := range map[string]string{
		"cityconnect/files/nginx.conf":            "../nginx/nginx.conf",
		"cityconnect/files/gateway.conf.template": "../nginx/templates/gateway.conf.template",
		"cityconnect/files/alerts.yml":            "../prometheus/alerts.yml",
	} {
		if read(t, copied) != read(t, original) {
			t.Errorf("%s differs: cp %s deploy/helm/%s", copied, strings.Replace(original, "..", "deploy", 1), copied)
		}
	}
}
