// Package config is the environment of report-service as a checked Config.
// docs/configuration.md describes each variable; a test keeps the two together.
package config

import (
	"errors"

	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// A Config is what report-service is told from outside.
type Config struct {
	Addr string `env:"HTTP_ADDR" envDefault:"127.0.0.1:3002"`
	config.Service
	Relay relay.Settings
}

// Load reads and checks the environment. Its error tells every fault at once,
// by the name of the variable, and shows no secret.
func Load(getenv func(string) string) (Config, error) {
	var cfg Config
	if err := config.Load(&cfg, getenv, cfg.check); err != nil {
		return Config{}, err
	}
	return cfg, nil
}

func (c *Config) check() error {
	return errors.Join(c.Service.Check(c.Addr), c.Relay.Validate())
}
