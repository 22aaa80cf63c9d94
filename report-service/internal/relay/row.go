package relay

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// appID is how consumers know who published.
const appID = "report-service"

// A row is an outbox row on its way.
type row struct {
	claim

	seq     int64
	id      uuid.UUID
	key     string
	report  uuid.UUID
	payload []byte
	headers []byte
	created time.Time
	retries int

	sent time.Time // when it was published
}

// message builds what is published for the row, or explains why it cannot be.
func (r *row) message() (amqp.Publishing, error) {
	headers, err := r.table()
	if err != nil {
		return amqp.Publishing{}, err
	}
	return amqp.Publishing{
		MessageId:    r.id.String(),
		Type:         r.key,
		ContentType:  "application/json",
		Timestamp:    r.created,
		DeliveryMode: amqp.Persistent,
		AppId:        appID,
		Headers:      headers,
		Body:         r.payload,
	}, nil
}

// table turns the headers, a flat JSON object, into what AMQP knows.
func (r *row) table() (amqp.Table, error) {
	// They come from our own database, but operators can write there: what cannot
	// travel would close the channel, and take its neighbours with it.
	var table amqp.Table
	if err := json.Unmarshal(r.headers, &table); err != nil {
		return nil, fmt.Errorf("%w: headers are not a JSON object", rabbit.ErrUnpublishable)
	}
	for name, value := range table {
		switch value.(type) {
		case string, bool, float64:
		default:
			return nil, fmt.Errorf("%w: header %q is neither text, number nor boolean", rabbit.ErrUnpublishable, name)
		}
	}
	return table, nil
}
