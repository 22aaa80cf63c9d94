package deadletter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/failure"
)

// maxErrorText bounds how much is kept of an error that anyone may have written.
const maxErrorText = 500

// NewLetter reads what lay in the dead-letter queue of queue. It never
// fails: what someone else made of a message must be archived too.
func NewLetter(queue string, d *amqp.Delivery, now time.Time) Letter {
	l := Letter{
		Queue: queue, MessageID: clean(d.MessageId), Type: clean(d.Type), Body: d.Body,
		Properties:  PropertiesOf(d),
		Headers:     EncodeHeaders(d.Headers),
		Class:       header(d.Headers, failure.FinalErrorClassHeader),
		Error:       header(d.Headers, failure.FinalErrorHeader),
		Retries:     failure.Retries(d.Headers),
		RetryReason: header(d.Headers, failure.RetryReasonHeader),
		FailedAt:    moment(d.Headers, failure.FailedAtHeader, now),
	}
	l.FirstFailedAt = moment(d.Headers, failure.FirstFailedAtHeader, l.FailedAt)
	if l.Type == "" {
		l.Type = header(d.Headers, failure.OriginalRoutingKeyHeader)
	}
	if id, err := uuid.Parse(header(d.Headers, failure.ReplayHeader)); err == nil {
		l.Replay = &id
	}
	if l.Class == "" {
		l.byBroker(d.Headers)
	}
	if l.MessageID == "" { // identified by their content, so that archiving twice is archiving once
		sum := sha256.Sum256(d.Body)
		l.MessageID = "sha256:" + hex.EncodeToString(sum[:])
	}
	l.Group = normalise(l.Error)
	return l
}

// PropertiesOf returns the properties of d that are given back when it is
// published again.
func PropertiesOf(d *amqp.Delivery) Properties {
	return Properties{ContentType: clean(d.ContentType), AppID: clean(d.AppId), Timestamp: d.Timestamp}
}

// byBroker says what the broker says of a dead letter that it made itself.
func (l *Letter) byBroker(headers amqp.Table) {
	l.Class, l.Error = string(failure.Foreign), "dead-lettered by the broker or another program"
	deaths, _ := headers[failure.CycleHeader].([]any)
	if len(deaths) == 0 {
		return
	}
	death, _ := deaths[0].(amqp.Table)
	reason := header(death, "reason")
	if reason == "delivery_limit" {
		l.Class = string(failure.Poison)
	}
	l.Error = "dead-lettered by the broker: " + reason
	if at, ok := death["time"].(time.Time); ok {
		l.FailedAt = at
		l.FirstFailedAt = at
	}
}

// header returns a header as text that the database takes.
func header(headers amqp.Table, name string) string {
	s, _ := headers[name].(string)
	s = clean(s)
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "")
	}
	return s
}

// clean removes what PostgreSQL has no place for in a text.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

func moment(headers amqp.Table, name string, otherwise time.Time) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, header(headers, name)); err == nil {
		return t
	}
	return otherwise
}

var (
	identifiers = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}`)
	numbers     = regexp.MustCompile(`[0-9]+`)
	sqlState    = regexp.MustCompile(`SQLSTATE [0-9A-Z]{5}`)
)

// normalise takes out of an error everything that differs from message to message,
// so that errors with the same cause fall into one group.
func normalise(e string) string {
	state := sqlState.FindString(e)
	e = numbers.ReplaceAllString(identifiers.ReplaceAllString(sqlState.ReplaceAllString(e, "SQLSTATE"), "*"), "N")
	if state != "" {
		e = strings.Replace(e, "SQLSTATE", state, 1)
	}
	return e
}

// EncodeHeaders returns headers as JSON that the database takes. What JSON has
// no word for becomes text.
func EncodeHeaders(headers amqp.Table) json.RawMessage {
	encoded, err := json.Marshal(plain(headers))
	if err != nil {
		return json.RawMessage(`{}`) // a float that is not a number, in a header of another program
	}
	return encoded
}

func plain(value any) any {
	switch v := value.(type) {
	case amqp.Table:
		object := make(map[string]any, len(v))
		for name, item := range v {
			object[clean(name)] = plain(item)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = plain(item)
		}
		return list
	case []byte:
		if utf8.Valid(v) {
			return clean(string(v))
		}
		return base64.StdEncoding.EncodeToString(v)
	case string:
		return clean(v)
	}
	return value
}

// DecodeHeaders is the way back from EncodeHeaders. Whole numbers come back as
// int64.
func DecodeHeaders(encoded json.RawMessage) amqp.Table {
	var object map[string]any
	if json.Unmarshal(encoded, &object) != nil {
		return amqp.Table{}
	}
	table, _ := wire(object).(amqp.Table)
	return table
}

func wire(value any) any {
	switch v := value.(type) {
	case map[string]any:
		table := make(amqp.Table, len(v))
		for name, item := range v {
			table[name] = wire(item)
		}
		return table
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = wire(item)
		}
		return list
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return value
}
