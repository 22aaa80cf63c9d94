package auth

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/config"
)

const testSecret = "0123456789abcdef0123456789abcdef"

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	good := Config{Mode: JWT, Issuer: "i", Audience: "a", Secret: testSecret, RoleClaim: "role", DepartmentsClaim: "departments"}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   []string // each is in the error; none means valid
	}{
		{"secret", func(*Config) {}, nil},
		{"JWKS", func(c *Config) { c.Secret, c.JWKSURL = "", "https://id.test/certs" }, nil},
		{"nothing at all", func(c *Config) { *c = Config{} },
			[]string{"AUTH_MODE:", "AUTH_ISSUER:", "AUTH_AUDIENCE:", "AUTH_ROLE_CLAIM:"}},
		{"an issuer that says where its keys are", func(c *Config) { c.Secret, c.Issuer = "", "https://id.test/realms/city/" }, nil},
		{"one on this machine", func(c *Config) { c.Secret, c.Issuer = "", "http://127.0.0.1:8081" }, nil},
		{"one that is a name", func(c *Config) { c.Secret, c.Issuer = "", "city" }, []string{"AUTH_ISSUER: must be an https:// address"}},
		{"one without TLS", func(c *Config) { c.Secret, c.Issuer = "", "http://id.test" }, []string{"AUTH_ISSUER: must be an https:// address"}},
		{"one with a query", func(c *Config) { c.Secret, c.Issuer = "", "https://id.test/?realm=city" }, []string{"AUTH_ISSUER: must be an https:// address"}},
		{"one with a fragment", func(c *Config) { c.Secret, c.Issuer = "", "https://id.test/#" }, []string{"AUTH_ISSUER: must be an https:// address"}},
		{"one with a password", func(c *Config) { c.Secret, c.Issuer = "", "https://city:hunter2@id.test" }, []string{"AUTH_ISSUER: must be an https:// address"}},
		{"one without TLS beside its keys", func(c *Config) { c.Secret, c.Issuer, c.JWKSURL = "", "http://id.test", "https://id.test/certs" }, nil},
		{"a second's life", func(c *Config) { c.MaxTokenLife = time.Second }, []string{"AUTH_MAX_TOKEN_LIFE: must be 1m or more"}},
		{"a host with a port", func(c *Config) { c.DevHosts = []string{"city.test:8080"} }, []string{"AUTH_DEV_HOSTS: must be host names"}},
		{"short secret", func(c *Config) { c.Secret = "hunter2" }, []string{"AUTH_JWT_SECRET: must be at least 32 bytes"}},
		{"secret and JWKS", func(c *Config) { c.JWKSURL = "https://id.test" }, []string{"AUTH_JWKS_URL:"}},
		{"JWKS is not a URL", func(c *Config) { c.Secret, c.JWKSURL = "", "id.test" }, []string{"AUTH_JWKS_URL:"}},
		{"dev without secret", func(c *Config) { c.Mode, c.Secret, c.JWKSURL, c.Addr = Dev, "", "https://id.test", "127.0.0.1:1" },
			[]string{"AUTH_JWT_SECRET: must be at least 32 bytes"}},
		{"dev on no address", func(c *Config) { c.Mode = Dev }, []string{"AUTH_MODE:"}},
	} {
		cfg := good
		tt.change(&cfg)
		err := config.NewError(cfg.Validate())
		if (err != nil) != (tt.want != nil) {
			t.Errorf("%s: got error %v, want one: %t", tt.name, err, tt.want != nil)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not tell %q", tt.name, err, w)
			}
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the secret: %v", tt.name, err)
		}
	}
}

// Development sign-in must be out of reach of strangers.
func TestDevBind(t *testing.T) {
	t.Parallel()
	_, loopback, _ := net.ParseCIDR("127.0.0.1/8")
	container := &net.IPNet{IP: net.IPv4(172, 28, 0, 5), Mask: net.CIDRMask(16, 32)}
	lan := &net.IPNet{IP: net.IPv4(192, 168, 1, 7), Mask: net.CIDRMask(24, 32)}
	link := &net.IPNet{IP: net.ParseIP("fe80::7"), Mask: net.CIDRMask(64, 128)}
	loopback.IP = net.IPv4(127, 0, 0, 1)

	for _, tt := range []struct {
		addr, network string
		interfaces    []net.Addr
		refused       string
	}{
		{"127.0.0.1:3002", "", nil, ""},
		{"[::1]:3002", "", nil, ""},
		{"localhost:3002", "", nil, ""},
		{"0.0.0.0:3002", "", []net.Addr{loopback}, ""},
		{"0.0.0.0:3002", "172.28.0.0/16", []net.Addr{loopback, container}, ""},
		{":3002", "10.0.0.0/8, 172.28.0.0/16", []net.Addr{loopback, container}, ""},
		{"172.28.0.5:3002", "172.28.0.0/16", nil, ""},
		{"0.0.0.0:3002", "", []net.Addr{loopback, container}, "172.28.0.5"},
		{"0.0.0.0:3002", "172.28.0.0/16", []net.Addr{loopback, container, lan}, "192.168.1.7"},
		{"[::]:3002", "172.28.0.0/16", []net.Addr{lan}, "192.168.1.7"},
		{":3002", "172.28.0.0/16", []net.Addr{loopback, container, link}, "fe80::/10, add it there"},
		{"192.168.1.7:3002", "172.28.0.0/16", nil, "192.168.1.7"},
		{"127.0.0.1:3002", "everywhere", nil, "AUTH_DEV_NETWORK"},
		{"0.0.0.0:3002", "0.0.0.0/0,::/0", []net.Addr{lan}, "private networks"},
		{"0.0.0.0:3002", "172.0.0.0/8", []net.Addr{container}, "private networks"},
		{"203.0.113.5:3002", "203.0.113.0/24", nil, "private networks"},
		{"192.168.1.7:3002", "192.168.1.0/24,fd00::/8", nil, ""},
		{"city.test:3002", "", nil, "IP address"},
		{"3002", "", nil, "IP address"},
	} {
		cfg := Config{Mode: Dev, Addr: tt.addr, DevNetwork: tt.network}
		fault, refused := cfg.devFault(func() ([]net.Addr, error) { return tt.interfaces, nil })
		switch {
		case tt.refused == "" && refused:
			t.Errorf("%s within %q: %v", tt.addr, tt.network, fault)
		case tt.refused != "" && !strings.Contains(fault.String(), tt.refused):
			t.Errorf("%s within %q: got fault %v, want one that names %s", tt.addr, tt.network, fault, tt.refused)
		}
	}
}

// The same on this machine's own interfaces, and through New.
func TestNewRefusesDevOnEveryAddress(t *testing.T) {
	t.Parallel()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	reachable := false
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		reachable = reachable || ok && !n.IP.IsLoopback()
	}
	cfg := Config{Mode: Dev, Issuer: "i", Audience: "a", Secret: testSecret, RoleClaim: "role", DepartmentsClaim: "departments", Addr: "0.0.0.0:0", DevNetwork: "169.254.0.0/16"}
	_, err = New(t.Context(), cfg, zerolog.Nop())
	if (err != nil) != reachable {
		t.Errorf("New: error %v; this machine has an address beside loopback: %t", err, reachable)
	}
}
