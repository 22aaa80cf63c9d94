package consumer

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	amqp "github.com/rabbitmq/amqp091-go"
)

// metrics are named as operators of queues know them. The only labels are
// queues, classes of failure and connections.
type metrics struct {
	consumed       *prometheus.HistogramVec
	handler        *prometheus.SummaryVec
	timeInQueue    *prometheus.HistogramVec
	acked          *prometheus.CounterVec
	nacked         *prometheus.CounterVec
	redelivered    *prometheus.CounterVec
	duplicates     *prometheus.CounterVec
	failed         *prometheus.CounterVec
	retried        *prometheus.CounterVec
	deadLettered   *prometheus.CounterVec
	resubscribed   *prometheus.CounterVec
	depth          *prometheus.GaugeVec
	consumers      *prometheus.GaugeVec
	stalled        *prometheus.GaugeVec
	workers        *prometheus.GaugeVec
	databaseUp     prometheus.Gauge
	channelsOpened prometheus.Counter
	channelsClosed prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	byQueue := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"queue"})
	}
	byClass := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"queue", "class"})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"queue"})
	}
	m := &metrics{
		consumed: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rabbitmq_consume_duration_seconds", Help: "Time to give a batch its effect.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"queue"}),
		handler: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: "rabbitmq_handler_duration_seconds", Help: "Time to give a batch its effect, as quantiles over the last minute.",
			Objectives: map[float64]float64{0.5: 0.01, 0.99: 0.001}, MaxAge: time.Minute,
		}, []string{"queue"}),
		timeInQueue: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rabbitmq_time_in_queue_seconds", Help: "Age of a message, by its timestamp of whole seconds, when it was delivered.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400},
		}, []string{"queue"}),
		acked:          byQueue("rabbitmq_messages_acked_total", "Deliveries acknowledged."),
		nacked:         byQueue("rabbitmq_messages_nacked_total", "Deliveries rejected to the broker's dead-lettering."),
		redelivered:    byQueue("rabbitmq_messages_redelivered_total", "Deliveries that were in hand before."),
		duplicates:     byQueue("rabbitmq_messages_duplicate_total", "Deliveries whose effect stood already."),
		failed:         byQueue("rabbitmq_handler_errors_total", "Batches that failed."),
		retried:        byClass("rabbitmq_messages_retried_total", "Messages sent to a retry tier."),
		deadLettered:   byClass("rabbitmq_messages_dead_lettered_total", "Messages that became dead letters."),
		resubscribed:   byQueue("rabbitmq_consumer_resubscriptions_total", "Subscriptions that the broker ended."),
		depth:          gauge("rabbitmq_queue_messages_ready", "Messages that wait in the queue."),
		consumers:      gauge("rabbitmq_queue_consumers", "Consumers of the queue, of all replicas."),
		stalled:        gauge("rabbitmq_handlers_stalled", "Workers that have had a batch in hand for too long."),
		workers:        gauge("rabbitmq_workers", "Workers of this replica that are subscribed."),
		databaseUp:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "consumer_database_up", Help: "1 while messages are taken, 0 while the database is away."}),
		channelsOpened: prometheus.NewCounter(prometheus.CounterOpts{Name: "rabbitmq_channels_opened_total", Help: "Consumer channels opened."}),
		channelsClosed: prometheus.NewCounter(prometheus.CounterOpts{Name: "rabbitmq_channels_closed_total", Help: "Consumer channels closed."}),
	}
	m.databaseUp.Set(1)
	reg.MustRegister(m.consumed, m.handler, m.timeInQueue, m.acked, m.nacked, m.redelivered, m.duplicates, m.failed,
		m.retried, m.deadLettered, m.resubscribed, m.depth, m.consumers, m.stalled, m.workers,
		m.databaseUp, m.channelsOpened, m.channelsClosed)
	return m
}

// received counts a delivery.
func (m *metrics) received(queue string, d *amqp.Delivery) {
	if d.Redelivered {
		m.redelivered.WithLabelValues(queue).Inc()
	}
	if !d.Timestamp.IsZero() {
		m.timeInQueue.WithLabelValues(queue).Observe(max(time.Since(d.Timestamp), 0).Seconds())
	}
}

// handled counts a batch.
func (m *metrics) handled(queue string, took time.Duration, err error) {
	m.consumed.WithLabelValues(queue).Observe(took.Seconds())
	m.handler.WithLabelValues(queue).Observe(took.Seconds())
	if err != nil {
		m.failed.WithLabelValues(queue).Inc()
	}
}

// handlerTimes returns the median and the 99th percentile of a batch's time
// over about the last minute; zero if none was handled.
func (m *metrics) handlerTimes(queue string) (p50, p99 time.Duration) {
	summary, ok := m.handler.WithLabelValues(queue).(prometheus.Metric)
	var seen dto.Metric
	if !ok || summary.Write(&seen) != nil {
		return 0, 0
	}
	quantiles := seen.GetSummary().GetQuantile() // in ascending order
	return duration(quantiles[0]), duration(quantiles[1])
}

// duration returns a quantile of seconds; that of nothing is no number.
func duration(q *dto.Quantile) time.Duration {
	if math.IsNaN(q.GetValue()) {
		return 0
	}
	return time.Duration(math.Round(q.GetValue() * float64(time.Second)))
}
