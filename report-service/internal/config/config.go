// Package config is the environment of report-service as a checked Config.
// docs/configuration.md describes each variable; a test keeps the two together.
package config

import (
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// A Config is what report-service is told from outside.
type Config struct {
	Addr           string `env:"HTTP_ADDR" envDefault:"127.0.0.1:3002"`
	DatabaseURL    string `env:"DATABASE_URL,required" example:"postgres://user:password@db.example.org:5432/cityconnect_reports"`
	RabbitURL      string `env:"RABBITMQ_URL,required" example:"amqp://user:password@rabbitmq.example.org:5672/"`
	TopologyPrefix string `env:"TOPOLOGY_PREFIX" example:"bandung."`
	RecipientKey   string `env:"RECIPIENT_KEY,required" example:"k1:$(openssl rand -base64 32)"`
	LogLevel       string `env:"LOG_LEVEL" envDefault:"info"`
	Auth           auth.Config
	Relay          relay.Settings

	Keys     *event.Keyring // RecipientKey, read
	Topology event.Topology // TopologyPrefix, read
}

// Load reads and checks the environment. Its error tells every fault at once,
// by the name of the variable, and shows no secret.
func Load(getenv func(string) string) (Config, error) {
	var cfg Config
	if err := config.Load(&cfg, getenv); err != nil {
		return Config{}, err
	}
	if err := cfg.check(); err != nil {
		return Config{}, err
	}
	return cfg, nil
}

func (c *Config) check() error {
	var faults []error
	wrong := func(name, want string) { faults = append(faults, fmt.Errorf("%s: want %s", name, want)) }

	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		wrong("HTTP_ADDR", "an address and a port, such as 127.0.0.1:3002")
	}
	// The parsers' errors may quote what they read, passwords included.
	if _, err := pgxpool.ParseConfig(c.DatabaseURL); err != nil {
		wrong("DATABASE_URL", "a URL such as postgres://user:password@db.example.org:5432/cityconnect_reports")
	}
	if _, err := amqp.ParseURI(c.RabbitURL); err != nil {
		wrong("RABBITMQ_URL", "a URL such as amqp://user:password@rabbitmq.example.org:5672/")
	}
	if level, err := zerolog.ParseLevel(c.LogLevel); err != nil || level == zerolog.NoLevel {
		wrong("LOG_LEVEL", "debug, info, warn or error")
	}
	var err error
	if c.Keys, err = event.ParseKeyring(c.RecipientKey); err != nil {
		faults = append(faults, fmt.Errorf("RECIPIENT_KEY: %w", err))
	}
	if c.Topology, err = event.NewTopology(c.TopologyPrefix); err != nil {
		faults = append(faults, fmt.Errorf("TOPOLOGY_PREFIX: %w", err))
	}
	c.Auth.Addr = c.Addr
	return errors.Join(append(faults, c.Auth.Validate(), c.Relay.Validate())...)
}
