package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/service"
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
	// ReportServiceURL is where delivery-worker reads the reports of departments that have
	// targets of Open311, and writes what came back; without it nothing is sent to them.
	ReportServiceURL string        `env:"REPORT_SERVICE_URL" example:"http://report-service:3002"`
	Retention        time.Duration `env:"DELIVERY_RETENTION" envDefault:"720h"`
	// CityWords is the folder with the city's words in other languages, and Languages are
	// its own; notification-service reads both too.
	CityWords string                `env:"CITY_WORDS" example:"/srv/words"`
	Languages config.Languages      `env:"CITY_LANGUAGES" envDefault:"en,id" example:"id,en"`
	Words     []wording.Translation // of CITY_WORDS, read by validate
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
	var err error
	c.Words, err = wording.ReadFolder(c.CityWords, c.Languages)
	faults := config.Faults(slices.Concat(faultOfWords(err), config.ValidateAddr("OPERATIONS_ADDR", c.Operations),
		c.Service.Validate(), c.Consumer.Validate(), c.Webhook.Validate(), c.Mail.Validate(), c.Push.Validate()))
	mailed := append(wording.Names(), service.Each(c.Words, func(t wording.Translation) string { return string(t.Language) })...)
	faults.Check(slices.Contains(mailed, c.Mail.NoticesLanguage), "MAIL_NOTICES_LANGUAGE", strings.Join(mailed, " or "))
	faults.Check(topology.ValidManagementURL(c.ManagementURL), "RABBITMQ_MANAGEMENT_URL", "a URL such as http://user:password@rabbitmq.example.org:15672")
	reports, err := url.Parse(c.ReportServiceURL)
	faults.Check(c.ReportServiceURL == "" || err == nil && slices.Contains([]string{"http", "https"}, reports.Scheme) && reports.Host != "",
		"REPORT_SERVICE_URL", "an address such as http://report-service:3002")
	faults.Check(c.Retention >= minRetention, "DELIVERY_RETENTION", "336h or more, such as 720h")
	return faults
}
