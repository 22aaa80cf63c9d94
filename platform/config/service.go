package config

import (
	"net"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// A Service is what both services are configured with: where the servers are, and
// how things are called there.
type Service struct {
	DatabaseURL    string `env:"DATABASE_URL,required" example:"postgres://user:password@db.example.org:5432/cityconnect"`
	RabbitURL      string `env:"RABBITMQ_URL,required" example:"amqp://user:password@rabbitmq.example.org:5672/"`
	TopologyPrefix string `env:"TOPOLOGY_PREFIX" example:"bandung."`
	RecipientKey   string `env:"RECIPIENT_KEY,required" example:"k1:$(openssl rand -base64 32)"`
	LogLevel       string `env:"LOG_LEVEL" envDefault:"info"`

	Keys     *event.Keyring // RecipientKey, read by Validate
	Topology event.Topology // TopologyPrefix, read by Validate
}

// Validate reads the values and returns everything that is wrong with them.
func (s *Service) Validate() []Fault {
	var faults Faults
	// The parsers' errors may quote their input, passwords included.
	_, err := pgxpool.ParseConfig(s.DatabaseURL)
	faults.Check(err == nil, "DATABASE_URL", "a URL such as postgres://user:password@db.example.org:5432/cityconnect")
	_, err = rabbit.Nodes(s.RabbitURL)
	faults.Check(err == nil, "RABBITMQ_URL", "a URL such as amqp://user:password@rabbitmq.example.org:5672/, with several nodes as a:5672,b:5672")
	level, err := zerolog.ParseLevel(s.LogLevel)
	faults.Check(err == nil && level != zerolog.NoLevel, "LOG_LEVEL", "debug, info, warn or error")
	s.Keys, err = event.ParseKeyring(s.RecipientKey)
	faults.Check(err == nil, "RECIPIENT_KEY", "<key id>:<base64 of 32 bytes>, such as k1:$(openssl rand -base64 32), each key id once")
	s.Topology, err = event.NewTopology(s.TopologyPrefix)
	faults.Check(err == nil, "TOPOLOGY_PREFIX", "a lower-case word that ends in a dot, such as bandung.")
	return faults
}

// ValidateAddr returns what is wrong with addr, the value of the variable name.
func ValidateAddr(name, addr string) []Fault {
	var faults Faults
	_, _, err := net.SplitHostPort(addr)
	faults.Check(err == nil, name, "an address and a port, such as 127.0.0.1:3002")
	return faults
}
