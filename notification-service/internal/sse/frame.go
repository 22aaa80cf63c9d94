package sse

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
)

// A frame is one event on the wire, encoded once for all its clients. Its id
// comes last, because a client of two streams gets an id of its own.
type frame struct {
	bytes    []byte
	idAt     int              // where the id line begins
	seq      int64            // in its stream, 0 for an event without an id
	commit   transport.Commit // zero for replayed frames, and for those of one reader alone
	optional bool             // left out where much waits already
}

// Events, as docs/stream.md describes them.
const (
	eventNotification = "notification"
	eventReady        = "ready"
	eventReset        = "reset"
	eventProgress     = "progress"
)

// heartbeat is an event rather than a comment, because comments do not reach a
// script, and scripts watch for silence.
var heartbeat = &frame{bytes: []byte("event: hb\ndata: 1\n\n"), idAt: len("event: hb\ndata: 1\n")}

// adopted is the last event of a guest whom an account has taken over: a reset, so that
// clients that do not know the reason ask for the list, and are refused with it.
var adopted = &frame{bytes: []byte("event: reset\ndata: {\"reason\":\"guest_adopted\"}\n\n")}

// notificationFrame encodes n for all clients of its stream. Clients get the JSON
// object of n's data, with id, time and read mark in front.
func notificationFrame(n notification.Notification, committed time.Time) *frame {
	b := make([]byte, 0, len(n.Data)+192)
	b = append(b, "event: "+eventNotification+"\ndata: {\"id\":\""...)
	b = append(b, n.ID.String()...)
	b = append(b, `","created_at":"`...)
	b = n.CreatedAt.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","read":false`...)
	fields := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(n.Data), []byte("{")))
	if len(fields) > 1 { // more than the closing brace
		b = append(b, ',')
	}
	b = appendLine(b, fields)
	b = append(b, '\n')
	idAt := len(b)
	b = appendID(b, notification.Cursor{{Epoch: n.Epoch, Seq: n.Seq}})
	return &frame{bytes: append(b, '\n'), idAt: idAt, seq: n.Seq, commit: transport.Commit{At: committed}}
}

// feedFrame encodes an event of the public feed, which has no history and so
// no id.
func feedFrame(d notification.Data, committed time.Time) (*frame, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	b := appendEvent(make([]byte, 0, len(data)+32), eventNotification, data)
	return &frame{bytes: append(b, '\n'), idAt: len(b), commit: transport.Commit{At: committed, TraceID: d.TraceID}}, nil
}

// progressFrame encodes progress, which has a value only at this moment.
func progressFrame(p notification.Progress) (*frame, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	b := appendEvent(make([]byte, 0, len(data)+32), eventProgress, data)
	return &frame{bytes: append(b, '\n'), idAt: len(b), optional: true}, nil
}

// appendEvent appends an event up to its id and its end.
func appendEvent(b []byte, event string, data []byte) []byte {
	b = append(b, "event: "...)
	b = append(b, event...)
	b = append(b, "\ndata: "...)
	b = appendLine(b, data)
	return append(b, '\n')
}

// appendLine appends JSON as one line. Inside a JSON string a line break is
// always escaped, so any that is left in data is mere layout.
func appendLine(b, data []byte) []byte {
	if !bytes.ContainsAny(data, "\r\n") {
		return append(b, data...)
	}
	for _, c := range data {
		if c != '\n' && c != '\r' {
			b = append(b, c)
		}
	}
	return b
}

func appendID(b []byte, c notification.Cursor) []byte {
	b = append(b, "id: "...)
	b = c.AppendText(b)
	return append(b, '\n')
}

func appendRetry(b []byte, d time.Duration) []byte {
	b = append(b, "retry: "...)
	b = strconv.AppendInt(b, d.Milliseconds(), 10)
	return append(b, '\n')
}
