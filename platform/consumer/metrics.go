package consumer

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/metric"
)

// metrics begin with consumer_, which none of RabbitMQ's own exporter does. The only
// labels are queues and classes of failure.
type metrics struct {
	consumed       *prometheus.HistogramVec
	recent         *prometheus.SummaryVec // the same for the operators' page; not exported
	timeInQueue    *prometheus.HistogramVec
	acked          *prometheus.CounterVec
	nacked         *prometheus.CounterVec
	redelivered    *prometheus.CounterVec
	duplicates     *prometheus.CounterVec
	failed         *prometheus.CounterVec
	retried        *prometheus.CounterVec
	postponed      *prometheus.CounterVec
	parked         *prometheus.CounterVec
	early          *prometheus.CounterVec
	waited         *prometheus.HistogramVec
	overtook       *prometheus.CounterVec
	deadLettered   *prometheus.CounterVec
	resubscribed   *prometheus.CounterVec
	depth          *prometheus.GaugeVec
	consumers      *prometheus.GaugeVec
	retrying       *prometheus.GaugeVec // by retry queue
	stalled        *prometheus.GaugeVec
	workers        *prometheus.GaugeVec
	databaseUp     prometheus.Gauge
	channelsOpened prometheus.Counter
	channelsClosed prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"queue"}, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"queue"})
	}
	return &metrics{
		consumed: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "consumer_apply_duration_seconds", Help: "Time to apply a batch.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"queue"}),
		recent: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Objectives: map[float64]float64{0.5: 0.01, 0.99: 0.001}, MaxAge: time.Minute,
		}, []string{"queue"}),
		timeInQueue: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "consumer_time_in_queue_seconds", Help: "Age of a message, by its timestamp of whole seconds, when it was delivered.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400},
		}, []string{"queue"}),
		acked:       counter("consumer_messages_acked_total", "Deliveries acknowledged."),
		nacked:      counter("consumer_messages_nacked_total", "Deliveries rejected to the broker's dead-lettering."),
		redelivered: counter("consumer_messages_redelivered_total", "Deliveries flagged redelivered by the broker."),
		duplicates:  counter("consumer_messages_duplicate_total", "Deliveries that had their effect before."),
		failed:      counter("consumer_batch_errors_total", "Batches that failed."),
		retried:     counter("consumer_messages_retried_total", "Messages sent to a retry queue.", "class"),
		postponed:   counter("consumer_messages_postponed_total", "Messages sent to a retry queue because their turn has not come."),
		parked:      counter("consumer_messages_parked_total", "Messages that wait until a time."),
		early:       counter("consumer_messages_early_total", "Messages parked because the one before them was missing."),
		waited: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "consumer_wait_for_previous_seconds", Help: "Time for which a message was parked until the one before it had its effect.",
			Buckets: []float64{0.5, 1, 2, 4, 8, 16, 32, 64},
		}, []string{"queue"}),
		overtook:       counter("consumer_messages_overtaking_total", "Messages handled although the one before them never came."),
		deadLettered:   counter("consumer_messages_dead_lettered_total", "Messages that became dead letters.", "class"),
		resubscribed:   counter("consumer_resubscriptions_total", "Subscriptions that the broker ended."),
		depth:          gauge("consumer_queue_ready", "Messages that wait in the queue."),
		consumers:      gauge("consumer_queue_consumers", "Consumers of the queue, of all replicas."),
		retrying:       gauge("consumer_retry_queue_waiting", "Messages that wait in the retry queue for their next attempt."),
		stalled:        gauge("consumer_workers_stalled", "Workers that have had a batch in hand for too long."),
		workers:        gauge("consumer_workers", "Workers of this replica that are subscribed."),
		databaseUp:     f.NewGauge(prometheus.GaugeOpts{Name: "consumer_database_up", Help: "1 while messages are taken, 0 while the database is away."}),
		channelsOpened: f.NewCounter(prometheus.CounterOpts{Name: "consumer_channels_opened_total", Help: "Consumer channels opened."}),
		channelsClosed: f.NewCounter(prometheus.CounterOpts{Name: "consumer_channels_closed_total", Help: "Consumer channels closed."}),
	}
}

// started makes the series of a queue that is consumed. Prometheus sees an increase
// only where it has seen 0 before: an alert would miss the first dead letter.
func (m *metrics) started(queue string) {
	for _, class := range []failure.Class{failure.Transient, failure.Panicked, failure.Permanent, failure.Poison} {
		m.deadLettered.WithLabelValues(queue, string(class))
		if class.Retryable() {
			m.retried.WithLabelValues(queue, string(class))
		}
	}
	m.acked.WithLabelValues(queue)
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
func (m *metrics) handled(queue string, took time.Duration, failed bool) {
	m.consumed.WithLabelValues(queue).Observe(took.Seconds())
	m.recent.WithLabelValues(queue).Observe(took.Seconds())
	if failed {
		m.failed.WithLabelValues(queue).Inc()
	}
}

// handlerTimes returns the median and the 99th percentile of a batch's time
// over about the last minute; zero if none was handled.
func (m *metrics) handlerTimes(queue string) (p50, p99 time.Duration) {
	return metric.Quantiles(m.recent.WithLabelValues(queue).(prometheus.Metric))
}

// queueStats are what the operators' page shows of a queue.
type queueStats struct {
	depth, consumers atomic.Int64 // as the broker last said
	exists           atomic.Bool  // the queue, as the broker last said
	handled, failed  metric.Rate
}
