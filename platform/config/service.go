package config

import (
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/event"
)

// A Service is what each of the services is told: where its servers are, how
// things are called there, and whose tokens it accepts.
type Service struct {
	DatabaseURL    string `env:"DATABASE_URL,required" example:"postgres://user:password@db.example.org:5432/cityconnect"`
	RabbitURL      string `env:"RABBITMQ_URL,required" example:"amqp://user:password@rabbitmq.example.org:5672/"`
	TopologyPrefix string `env:"TOPOLOGY_PREFIX" example:"bandung."`
	RecipientKey   string `env:"RECIPIENT_KEY,required" example:"k1:$(openssl rand -base64 32)"`
	LogLevel       string `env:"LOG_LEVEL" envDefault:"info"`
	Auth           auth.Config

	Keys     *event.Keyring // RecipientKey, read
	Topology event.Topology // TopologyPrefix, read
}

// Check reads the values and reports everything that is wrong with them, each
// fault by the name of its variable, without showing a secret. The service
// listens on addr.
func (s *Service) Check(addr string) error {
	var faults []error
	wrong := func(name, want string) { faults = append(faults, fmt.Errorf("%s: want %s", name, want)) }

	if _, _, err := net.SplitHostPort(addr); err != nil {
		wrong("HTTP_ADDR", "an address and a port, such as 127.0.0.1:3002")
	}
	// The parsers' errors may quote what they read, passwords included.
	if _, err := pgxpool.ParseConfig(s.DatabaseURL); err != nil {
		wrong("DATABASE_URL", "a URL such as postgres://user:password@db.example.org:5432/cityconnect")
	}
	if _, err := amqp.ParseURI(s.RabbitURL); err != nil {
		wrong("RABBITMQ_URL", "a URL such as amqp://user:password@rabbitmq.example.org:5672/")
	}
	if level, err := zerolog.ParseLevel(s.LogLevel); err != nil || level == zerolog.NoLevel {
		wrong("LOG_LEVEL", "debug, info, warn or error")
	}
	var err error
	if s.Keys, err = event.ParseKeyring(s.RecipientKey); err != nil {
		faults = append(faults, fmt.Errorf("RECIPIENT_KEY: %w", err))
	}
	if s.Topology, err = event.NewTopology(s.TopologyPrefix); err != nil {
		faults = append(faults, fmt.Errorf("TOPOLOGY_PREFIX: %w", err))
	}
	s.Auth.Addr = addr
	return errors.Join(append(faults, s.Auth.Validate())...)
}
