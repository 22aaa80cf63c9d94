package webhook

import (
	"net/url"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/config"
)

// A Config is what an operator may set of the sending of webhooks.
type Config struct {
	Rules
	Timeout      time.Duration   `envDefault:"15s"` // far below the lease of a lane
	Concurrency  int             `envDefault:"128"`
	RetryDelays  []time.Duration `env:"WEBHOOK_RETRY_DELAYS" envDefault:"5s,5m,30m,2h,5h,10h,14h,20h,24h"`
	DisableAfter time.Duration   `envDefault:"120h"`
	ProxyURL     string          `env:"WEBHOOK_PROXY_URL" example:"http://egress.example.org:3128"`

	Proxy *url.URL // ProxyURL, read by Validate; nil is none
}

// Limits of the settings.
const (
	minRetryDelay = time.Second
)

// Validate returns everything that is wrong with c.
func (c *Config) Validate() []config.Fault {
	faults := config.Faults(c.Rules.Validate())
	outside := func(d time.Duration) bool { return d < minRetryDelay || d > Lifetime }
	faults.Check(!slices.ContainsFunc(c.RetryDelays, outside), "WEBHOOK_RETRY_DELAYS", "pauses of 1s to 168h joined by commas, such as 5s,5m,30m")
	if c.ProxyURL != "" {
		proxy, err := url.Parse(c.ProxyURL)
		faults.Check(err == nil && slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) && proxy.Host != "",
			"WEBHOOK_PROXY_URL", "a URL such as http://egress.example.org:3128")
		c.Proxy = proxy
	}
	return faults
}

// Ledger returns what c says to the dispatcher.
func (c *Config) Ledger() ledger.Config {
	return ledger.Config{Concurrency: c.Concurrency, Timeout: c.Timeout, Schedule: c.RetryDelays, DisableAfter: c.DisableAfter}
}
