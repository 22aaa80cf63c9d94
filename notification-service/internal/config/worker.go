package config

import (
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// A WorkerAddress is where delivery-worker answers how it is.
type WorkerAddress struct {
	Operations string `env:"OPERATIONS_ADDR" envDefault:"127.0.0.1:3014"`
}

// A Worker is the environment of delivery-worker.
type Worker struct {
	WorkerAddress
	config.Service
	ManagementURL string `env:"RABBITMQ_MANAGEMENT_URL" example:"http://user:password@rabbitmq.example.org:15672"`
	Consumer      consumer.Config
	Webhook       webhook.Config
	Mail          email.Config
	Push          push.Config
	Retention     time.Duration `env:"DELIVERY_RETENTION" envDefault:"720h"`
}

// minRetention is longer than a delivery can be waiting or held.
const minRetention = webhook.Lifetime + webhook.MaxHeldFor

// LoadWorker reads and checks the environment of delivery-worker. Its error
// has every fault at once, by the name of the variable, and shows no secret.
func LoadWorker(getenv func(string) string) (cfg Worker, err error) {
	err = config.Load(&cfg, getenv, cfg.validate)
	return cfg, err
}

// WorkerAddr reads only the address of the health check of delivery-worker.
func WorkerAddr(getenv func(string) string) (string, error) {
	var a WorkerAddress
	err := config.Load(&a, getenv, nil)
	return a.Operations, err
}

func (c *Worker) validate() []config.Fault {
	faults := config.Faults(slices.Concat(config.ValidateAddr("OPERATIONS_ADDR", c.Operations),
		c.Service.Validate(), c.Consumer.Validate(), c.Webhook.Validate(), c.Mail.Validate(), c.Push.Validate()))
	faults.Check(topology.ValidManagementURL(c.ManagementURL), "RABBITMQ_MANAGEMENT_URL", "a URL such as http://user:password@rabbitmq.example.org:15672")
	faults.Check(c.Retention >= minRetention, "DELIVERY_RETENTION", "336h or more, such as 720h")
	return faults
}
