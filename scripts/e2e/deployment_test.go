package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A composeService is the definition of one container in Compose.
type composeService struct {
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	CPUs        any      `yaml:"cpus"`
	MemLimit    string   `yaml:"mem_limit"`
	PidsLimit   int      `yaml:"pids_limit"`
	Logging     struct {
		Options map[string]string `yaml:"options"`
	} `yaml:"logging"`
	Image       string            `yaml:"image"`
	Build       any               `yaml:"build"`
	Ports       []string          `yaml:"ports"`
	Environment map[string]string `yaml:"environment"`
	Profiles    []string          `yaml:"profiles"`
	DependsOn   map[string]any    `yaml:"depends_on"`
	Entrypoint  []string          `yaml:"entrypoint"`
}

func composeFile(t *testing.T, path string) map[string]composeService {
	t.Helper()
	var file struct {
		Services map[string]composeService `yaml:"services"`
	}
	if err := yaml.Unmarshal(must(os.ReadFile(filepath.Join(root(), path))), &file); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return file.Services
}

// Every container is bounded and can do no more than it has to, is reached from
// this machine alone, and is built on an image that can be pinned.
func TestContainersAreConfined(t *testing.T) {
	t.Parallel()
	for name, s := range composeFile(t, "docker-compose.yml") {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s is not confined: %+v", name, s)
		}
		if s.CPUs == nil || s.MemLimit == "" || s.PidsLimit == 0 || s.Logging.Options["max-size"] == "" {
			t.Errorf("%s has no limit of processors, memory, processes or log: %+v", name, s)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s is reached from other machines at %s", name, port)
			}
		}
		if ours := strings.HasPrefix(s.Image, "cityconnect/"); !ours && !strings.Contains(s.Image, "_IMAGE:-") {
			t.Errorf("%s: image %s cannot be pinned by a variable", name, s.Image)
		}
	}
}

// In production nobody hands out tokens by accident: the identity provider, the
// page's address and its certificate are asked for, and only the gateway is
// reached from outside.
func TestProductionNeedsAnIdentityProvider(t *testing.T) {
	t.Parallel()
	production := composeFile(t, filepath.Join("deploy", "compose.production.yml"))
	for name, s := range composeFile(t, "docker-compose.yml") {
		over := production[name]
		if name != "gateway" && len(over.Ports) > 0 {
			t.Errorf("%s is reached at %s in production", name, over.Ports)
		}
		if s.Environment["AUTH_MODE"] == "" {
			continue
		}
		if over.Environment["AUTH_MODE"] != "jwt" || over.Environment["AUTH_DEV_NETWORK"] != "" {
			t.Errorf("%s: AUTH_MODE is %q in production", name, over.Environment["AUTH_MODE"])
		}
		for _, variable := range []string{"AUTH_ISSUER", "AUTH_AUDIENCE"} {
			if !strings.HasPrefix(over.Environment[variable], fmt.Sprintf("${%s:?", variable)) {
				t.Errorf("%s starts without %s in production: %q", name, variable, over.Environment[variable])
			}
		}
	}
	if !strings.HasPrefix(production["gateway"].Environment["GATEWAY_HTTPS_ORIGIN"], "${GATEWAY_HTTPS_ORIGIN:?") {
		t.Errorf("the gateway starts without the page's address: %v", slices.Sorted(maps.Keys(production["gateway"].Environment)))
	}
}

// With servers of one's own the stack starts none of its own, and nothing that runs
// waits for them; their URLs are asked for.
func TestOwnServersReplaceOurs(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct{ gone, needed []string }{
		"compose.own-postgresql.yml": {[]string{"postgres", "databases"}, []string{"REPORT_DATABASE_URL", "NOTIFICATION_DATABASE_URL"}},
		"compose.own-rabbitmq.yml": {[]string{"rabbitmq", "broker-users"},
			[]string{"REPORT_RABBITMQ_URL", "NOTIFICATION_RABBITMQ_URL", "PHOTO_RABBITMQ_URL", "RABBITMQ_MANAGEMENT_URL"}},
	} {
		over := composeFile(t, filepath.Join("deploy", file))
		for name, s := range composeFile(t, "docker-compose.yml") {
			if slices.Contains(want.gone, name) {
				if len(over[name].Profiles) != 1 {
					t.Errorf("%s: %s is in the profiles %v, must be in one that nobody starts", file, name, over[name].Profiles)
				}
				continue
			}
			needs := s.DependsOn
			if over[name].DependsOn != nil {
				needs = over[name].DependsOn
			}
			for _, gone := range want.gone {
				if _, waits := needs[gone]; waits {
					t.Errorf("%s: %s waits for %s, which does not start", file, name, gone)
				}
			}
		}
		for _, variable := range want.needed {
			if value := over["secrets"].Environment[variable]; !strings.Contains(value, ":?") {
				t.Errorf("%s starts without %s: %q", file, variable, value)
			}
		}
	}
}

// nginx keeps the addresses of its start, and Docker gives others after a reboot: the gateway
// is started by the script that follows those of both services.
func TestGatewayFollowsAddresses(t *testing.T) {
	t.Parallel()
	gateway := composeFile(t, "docker-compose.yml")["gateway"]
	if want := []string{"sh", "/deploy/follow.sh", "report-service", "notification-service", "--", "/docker-entrypoint.sh"}; !slices.Equal(gateway.Entrypoint, want) {
		t.Errorf("the gateway is started by %q, must be %q", gateway.Entrypoint, want)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"getent": "#!/bin/sh\n[ \"$2 $3\" = 'a b' ] && cat " + dir + "/addresses\n",
		"nginx":  "#!/bin/sh\n[ \"$1 $2\" != '-s reload' ] || touch " + dir + "/reloaded\n",
		"sleep":  "#!/bin/sh\nexec " + must(exec.LookPath("sleep")) + " 0.01\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	address := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "new"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "addresses")); err != nil {
			t.Fatal(err)
		}
	}
	address("10.0.0.1 a\n")
	follow := exec.CommandContext(t.Context(), "sh", filepath.Join(root(), "deploy", "nginx", "follow.sh"), "a", "b", "--", must(exec.LookPath("sleep")), "600")
	follow.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	follow.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-follow.Process.Pid, syscall.SIGKILL); _ = follow.Wait() })
	next := 2
	eventually.NothingMissing(t, "reload", func() string {
		address(fmt.Sprintf("10.0.0.%d a\n", next)) // until the script has seen a first one
		next++
		if _, err := os.Stat(filepath.Join(dir, "reloaded")); err != nil {
			return "nginx is not reloaded"
		}
		return ""
	})
}

// The images are built from what .dockerignore lets through: each file of ours that a
// program contains.
func TestImagesHaveTheirSources(t *testing.T) {
	t.Parallel()
	var let, kept []string
	for line := range strings.Lines(string(must(os.ReadFile(filepath.Join(root(), ".dockerignore"))))) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "!"); found {
			let = append(let, name)
		} else if name, found := strings.CutPrefix(strings.TrimSpace(line), "**/"); found {
			kept = append(kept, name)
		}
	}
	list := exec.Command("go", "list", "-deps", "-f", `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`,
		"./migrations/cmd/...", "./report-service/cmd/...", "./notification-service/cmd/...", "./scripts/cmd/mailbox")
	list.Dir = root()
	files := 0
	for file := range strings.FieldsSeq(string(must(list.Output()))) {
		name, ours := strings.CutPrefix(file, root()+"/")
		if !ours {
			continue
		}
		files++
		if !slices.ContainsFunc(let, func(prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }) {
			t.Errorf("%s is in a program, and .dockerignore keeps it from the images", name)
		}
		for _, part := range strings.Split(name, "/") {
			for _, pattern := range kept {
				if must(filepath.Match(pattern, part)) {
					t.Errorf("%s is in a program, and .dockerignore keeps it from the images by **/%s", name, pattern)
				}
			}
		}
	}
	if files < 100 {
		t.Errorf("the programs have %d files", files)
	}
}

// nginx takes what docs/production.md makes of the gateway's files for Debian's unit: its
// pid file, its user, and a stderr that is a socket, as systemd gives it.
func TestGatewayUnderSystemd(t *testing.T) {
	t.Parallel()
	manual := string(must(os.ReadFile(filepath.Join(root(), "docs", "production.md"))))
	block := regexp.MustCompile(`(?s)export GATEWAY_LISTEN=80.*?>/etc/nginx/nginx\.conf`).FindString(manual)
	if block == "" {
		t.Fatal("docs/production.md does not configure nginx")
	}
	dir := t.TempDir()
	script := strings.NewReplacer("/etc/nginx", dir, "/etc/cityconnect/tls", dir, "/var/log/nginx", dir, "/var/lib/nginx", dir,
		"GATEWAY_LISTEN=80", "GATEWAY_LISTEN=127.0.0.1:1", "GATEWAY_LISTEN_TLS=443", "GATEWAY_LISTEN_TLS=127.0.0.1:2").Replace(block)
	mustRun(t, exec.Command(filepath.Join(root(), "deploy", "nginx", "certificate.sh"), dir))
	if err := os.Mkdir(filepath.Join(dir, "conf.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	configure := exec.Command("bash", "-euc", script)
	configure.Dir = root()
	mustRun(t, configure)
	written := string(must(os.ReadFile(filepath.Join(dir, "nginx.conf"))))
	for _, want := range []string{"user www-data;", "pid /run/nginx.pid;"} {
		if !strings.Contains(written, want) {
			t.Errorf("the main file has no %q:\n%s", want, written)
		}
	}
	sockets, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	stderr, reader := os.NewFile(uintptr(sockets[0]), "stderr"), os.NewFile(uintptr(sockets[1]), "reader")
	defer reader.Close()
	// The test's own pid file, and no user: neither needs root.
	tried := strings.NewReplacer("user www-data;", "", "/run/nginx.pid", dir+"/nginx.pid", "/etc/nginx", dir).Replace(written)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(tried), 0o600); err != nil {
		t.Fatal(err)
	}
	nginx := exec.Command("nginx", "-t", "-c", filepath.Join(dir, "nginx.conf"))
	nginx.Stderr = stderr
	err = nginx.Run()
	stderr.Close()
	if err != nil {
		said := make([]byte, 4096)
		n, _ := reader.Read(said)
		t.Errorf("nginx -t: %v: %s", err, said[:n])
	}
}

// The unit starts each program that there is, as the chart and Compose do.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	unit := string(must(os.ReadFile(filepath.Join(root(), "deploy", "systemd", "cityconnect@.service"))))
	for _, program := range []string{"report-service", "notification-service", "photo-worker", "delivery-worker"} {
		if !strings.Contains(unit, program) {
			t.Errorf("the unit does not name %s", program)
		}
	}
	for _, want := range []string{"User=cityconnect\n", "LimitNOFILE=65536\n", "NoNewPrivileges=yes\n", "ProtectSystem=strict\n", "CapabilityBoundingSet=\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit has no %s", want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	instance := filepath.Join(t.TempDir(), "cityconnect@report-service.service")
	unit = regexp.MustCompile(`(?m)^ExecStart=.*$`).ReplaceAllString(unit, "ExecStart=/bin/true")
	if err := os.WriteFile(instance, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", instance).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
}
