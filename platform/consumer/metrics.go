package consumer

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"
	amqp "github.com/rabbitmq/amqp091-go"
)

// metrics are named as operators of queues know them, and otherwise than those
// of RabbitMQ's own exporter. The only labels are queues and classes of
// failure.
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
	parked         *prometheus.CounterVec
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
			Name: "rabbitmq_consume_duration_seconds", Help: "Time to give a batch its effect.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"queue"}),
		recent: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Objectives: map[float64]float64{0.5: 0.01, 0.99: 0.001}, MaxAge: time.Minute,
		}, []string{"queue"}),
		timeInQueue: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rabbitmq_time_in_queue_seconds", Help: "Age of a message, by its timestamp of whole seconds, when it was delivered.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400},
		}, []string{"queue"}),
		acked:          counter("rabbitmq_messages_acked_total", "Deliveries acknowledged."),
		nacked:         counter("rabbitmq_messages_nacked_total", "Deliveries rejected to the broker's dead-lettering."),
		redelivered:    counter("rabbitmq_messages_redelivered_total", "Deliveries that were in hand before."),
		duplicates:     counter("rabbitmq_messages_duplicate_total", "Deliveries that had their effect before."),
		failed:         counter("rabbitmq_handler_errors_total", "Batches that failed."),
		retried:        counter("rabbitmq_messages_retried_total", "Messages sent to a retry queue.", "class"),
		parked:         counter("rabbitmq_messages_parked_total", "Messages that wait until a time."),
		deadLettered:   counter("rabbitmq_messages_dead_lettered_total", "Messages that became dead letters.", "class"),
		resubscribed:   counter("rabbitmq_consumer_resubscriptions_total", "Subscriptions that the broker ended."),
		depth:          gauge("consumer_queue_ready", "Messages that wait in the queue."),
		consumers:      gauge("consumer_queue_consumers", "Consumers of the queue, of all replicas."),
		retrying:       gauge("consumer_retry_queue_waiting", "Messages that wait in the retry queue for their next attempt."),
		stalled:        gauge("rabbitmq_handlers_stalled", "Workers that have had a batch in hand for too long."),
		workers:        gauge("rabbitmq_workers", "Workers of this replica that are subscribed."),
		databaseUp:     f.NewGauge(prometheus.GaugeOpts{Name: "consumer_database_up", Help: "1 while messages are taken, 0 while the database is away."}),
		channelsOpened: f.NewCounter(prometheus.CounterOpts{Name: "consumer_channels_opened_total", Help: "Consumer channels opened."}),
		channelsClosed: f.NewCounter(prometheus.CounterOpts{Name: "consumer_channels_closed_total", Help: "Consumer channels closed."}),
	}
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
	m.recent.WithLabelValues(queue).Observe(took.Seconds())
	if err != nil {
		m.failed.WithLabelValues(queue).Inc()
	}
}

// handlerTimes returns the median and the 99th percentile of a batch's time
// over about the last minute; zero if none was handled.
func (m *metrics) handlerTimes(queue string) (p50, p99 time.Duration) {
	summary, ok := m.recent.WithLabelValues(queue).(prometheus.Metric)
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

// queueStats are what the operators' page shows of a queue.
type queueStats struct {
	depth, consumers atomic.Int64 // as the broker last said
	exists           atomic.Bool  // the queue, as the broker last said
	handled, failed  rate
}

// rateSpan is over how many seconds a rate takes its mean.
const rateSpan = 10

// A rate is how many things happened per second, over the last seconds.
type rate struct {
	total atomic.Int64

	mu   sync.Mutex
	past []int64 // total at the last ticks, oldest first
}

func (r *rate) add(n int) { r.total.Add(int64(n)) }

// tick is called once a second.
func (r *rate) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.past = append(r.past, r.total.Load())
	if len(r.past) > rateSpan+1 {
		r.past = r.past[1:]
	}
}

// perSecond returns the mean over the last seconds.
func (r *rate) perSecond() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.past) < 2 {
		return 0
	}
	last := len(r.past) - 1
	return float64(r.past[last]-r.past[0]) / float64(last)
}
