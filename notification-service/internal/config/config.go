// Package config is the environment of notification-service as a checked
// Config. docs/configuration.md describes each variable; a test keeps the two
// together.
package config

import (
	"errors"
	"slices"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/notification-service/internal/topology"
	"github.com/cityconnect/cityconnect/notification-service/internal/web"
	"github.com/cityconnect/cityconnect/platform/config"
)

// A Config is what notification-service is told from outside.
type Config struct {
	Addr          string `env:"HTTP_ADDR" envDefault:"127.0.0.1:3003"`
	ManagementURL string `env:"RABBITMQ_MANAGEMENT_URL" example:"http://user:password@rabbitmq.example.org:15672"`
	config.Service
	Stream   sse.Config
	Consumer consumer.Tuning
	Page     web.Config
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
	faults := slices.Concat(c.Stream.Validate(), c.Consumer.Validate(), c.Page.Validate())
	const anyBroker = "amqp://127.0.0.1/" // RABBITMQ_URL answers for itself
	if _, err := topology.NewManagement(c.ManagementURL, anyBroker); c.ManagementURL != "" && err != nil {
		faults = append(faults, errors.New("RABBITMQ_MANAGEMENT_URL: want a URL such as http://user:password@rabbitmq.example.org:15672"))
	}
	return errors.Join(append(faults, c.Service.Check(c.Addr))...)
}
