// Package config is the environment of notification-service as a checked
// Config. docs/configuration.md describes each variable; a test keeps the two
// together.
package config

import (
	"fmt"
	"slices"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/geocoder"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/notification-service/internal/web"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// A Config is the environment of notification-service.
type Config struct {
	Address
	config.Service
	Auth          auth.Config
	ManagementURL string `env:"RABBITMQ_MANAGEMENT_URL" example:"http://user:password@rabbitmq.example.org:15672"`
	Stream        sse.Config
	Consumer      consumer.Config
	Retention     postgres.Retention
	Page          web.Config
	Geocoder      geocoder.Config
	Webhooks      webhook.Rules // for the addresses that operators register
	Mail          email.Intake
	Push          push.Config
}

// An Address is where notification-service listens, and where it does for
// operators alone.
type Address struct {
	Addr       string `env:"HTTP_ADDR" envDefault:"127.0.0.1:3003"`
	Operations string `env:"OPERATIONS_ADDR" envDefault:"127.0.0.1:3013"`
}

// Load reads and checks the environment. Its error has every fault at once,
// by the name of the variable, and shows no secret.
func Load(getenv func(string) string) (cfg Config, err error) {
	err = config.Load(&cfg, getenv, cfg.validate)
	return cfg, err
}

// Addr reads only where notification-service listens.
func Addr(getenv func(string) string) (string, error) {
	var a Address
	err := config.Load(&a, getenv, nil)
	return a.Addr, err
}

func (c *Config) validate() []config.Fault {
	c.Auth.Addr = c.Addr
	var err error
	c.Page.Words, err = wording.ReadFolder(c.Page.CityWords, c.Page.Languages)
	faults := config.Faults(slices.Concat(faultOfWords(err), config.ValidateAddr("HTTP_ADDR", c.Addr), config.ValidateAddr("OPERATIONS_ADDR", c.Operations),
		c.Service.Validate(), c.Auth.Validate(), c.Stream.Validate(), c.Consumer.Validate(), c.Page.Validate(), c.Geocoder.Validate(), c.Webhooks.Validate(), c.Mail.Validate(), c.Push.Validate()))
	faults.Check(topology.ValidManagementURL(c.ManagementURL), "RABBITMQ_MANAGEMENT_URL", "a URL such as http://user:password@rabbitmq.example.org:15672")
	return faults
}

// faultOfWords returns the fault of a folder that cannot be read.
func faultOfWords(err error) (faults config.Faults) {
	faults.Check(err == nil, "CITY_WORDS", fmt.Sprintf("a folder with files as `make words` writes them: %v", err))
	return faults
}
