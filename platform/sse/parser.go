// Package sse reads event streams. It is written from WHATWG HTML §9.2.6 and shares no code with the
// service that encodes the streams. A browser is a client of the same kind, so a stream that
// passes here would be read there, too.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// The types of event that the streams have, see docs/stream.md.
const (
	Ready        = "ready"
	Notification = "notification"
	Heartbeat    = "hb"
	Reset        = "reset"
)

// maxLine ends a stream that is none.
const maxLine = 1 << 20

var errLine = errors.New("a line of the event stream is too long")

// An Event is one event of a stream. Its Data is good until the next one is
// read.
type Event struct {
	Type string // "message" unless the stream named it
	ID   string // the last one that the stream set, as EventSource has it
	Data []byte
}

// A Parser reads an event stream. Its buffers are used over and over, so that
// an event costs next to no allocation: a load test reads millions.
type Parser struct {
	r       *bufio.Reader
	line    []byte
	data    []byte
	event   []byte
	lastID  string
	retry   time.Duration
	skipLF  bool // the line before ended in CR
	started bool
}

// NewParser returns a Parser of r whose last event id is lastID.
func NewParser(r io.Reader, lastID string) *Parser {
	return &Parser{r: bufio.NewReaderSize(r, 2048), lastID: lastID}
}

// LastID returns the last event id, as a client sends it when it comes back.
// An id without an event counts as well, as in Chromium.
func (p *Parser) LastID() string { return p.lastID }

// Retry returns the pause before a reconnection that the stream asked for
// last, or 0 if it did not.
func (p *Parser) Retry() time.Duration { return p.retry }

// Next returns the next event that has data. An event that the end of the
// stream cuts off does not count.
func (p *Parser) Next() (Event, error) {
	p.data, p.event = p.data[:0], p.event[:0]
	for {
		if err := p.readLine(); err != nil {
			return Event{}, err
		}
		switch {
		case len(p.line) > 0:
			p.readField()
		case len(p.data) == 0: // nothing to dispatch
			p.event = p.event[:0]
		default:
			return Event{Type: p.eventType(), ID: p.lastID, Data: bytes.TrimSuffix(p.data, []byte("\n"))}, nil
		}
	}
}

// readLine reads up to CR, LF or CRLF into p.line. It does not wait for what
// follows a CR: an event must not be late by one.
func (p *Parser) readLine() error {
	p.line = p.line[:0]
	for {
		b, err := p.r.ReadByte()
		if err != nil {
			return err
		}
		skip := p.skipLF && b == '\n'
		p.skipLF = false
		switch {
		case skip:
		case b == '\n', b == '\r':
			p.skipLF = b == '\r'
			if !p.started {
				p.line = bytes.TrimPrefix(p.line, []byte("\xEF\xBB\xBF")) // a byte order mark
				p.started = true
			}
			return nil
		case len(p.line) == maxLine:
			return errLine
		default:
			p.line = append(p.line, b)
		}
	}
}

func (p *Parser) readField() {
	name, value, _ := bytes.Cut(p.line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) { // a comment has an empty name
	case "event":
		p.event = append(p.event[:0], value...)
	case "data":
		p.data = append(append(p.data, value...), '\n')
	case "id":
		if bytes.IndexByte(value, 0) < 0 && p.lastID != string(value) {
			p.lastID = string(value)
		}
	case "retry":
		if ms, ok := digits(value); ok {
			p.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// eventType names the event without allocating for the types of our streams.
func (p *Parser) eventType() string {
	switch string(p.event) {
	case "":
		return "message"
	case Notification:
		return Notification
	case Heartbeat:
		return Heartbeat
	}
	return string(p.event)
}

func digits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<32 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(b) > 0
}
