package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
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

// A parser reads an event stream as WHATWG HTML §9.2.6 says. Its buffers are
// used over and over, so that an event costs next to no allocation.
type parser struct {
	r        *bufio.Reader
	line     []byte
	data     []byte
	event    []byte
	id       string
	retry    time.Duration // as the stream asked for, 0 if it did not
	skipLF   bool          // the line before ended in CR
	started  bool
	received func() // called with every line, also a comment
}

func newParser(r io.Reader, lastID string, received func()) *parser {
	return &parser{r: bufio.NewReaderSize(r, 2048), id: lastID, received: received}
}

// next returns the next event that has data.
func (p *parser) next() (Event, error) {
	p.data, p.event = p.data[:0], p.event[:0]
	for {
		if err := p.readLine(); err != nil {
			return Event{}, err // an event without its end is not dispatched
		}
		p.received()
		if len(p.line) > 0 {
			p.field()
			continue
		}
		if len(p.data) == 0 {
			p.event = p.event[:0]
			continue
		}
		return Event{Type: p.eventType(), ID: p.id, Data: bytes.TrimSuffix(p.data, []byte("\n"))}, nil
	}
}

// readLine reads up to CR, LF or CRLF into p.line. It does not wait for what
// follows a CR: an event must not be late by one.
func (p *parser) readLine() error {
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
			p.trimBOM()
			return nil
		case len(p.line) == maxLine:
			return errLine
		default:
			p.line = append(p.line, b)
		}
	}
}

func (p *parser) trimBOM() {
	if !p.started {
		p.line = bytes.TrimPrefix(p.line, []byte("\xEF\xBB\xBF"))
		p.started = true
	}
}

func (p *parser) field() {
	name, value, _ := bytes.Cut(p.line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) { // a comment has an empty name
	case "event":
		p.event = append(p.event[:0], value...)
	case "data":
		p.data = append(append(p.data, value...), '\n')
	case "id":
		if bytes.IndexByte(value, 0) < 0 && p.id != string(value) {
			p.id = string(value)
		}
	case "retry":
		if ms, ok := digits(value); ok {
			p.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// eventType names the event without allocating for the types of our streams.
func (p *parser) eventType() string {
	switch string(p.event) {
	case "":
		return "message"
	case Notified:
		return Notified
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
