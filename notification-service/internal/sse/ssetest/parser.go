// Package ssetest is a client of event streams for tests. Its parser is
// written from WHATWG HTML §9.2.6 and shares nothing with the encoder.
package ssetest

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"
)

// An Event is one that was dispatched.
type Event struct {
	Type string // "message" unless the stream named it
	Data string
	ID   string // the last one that the stream set, as EventSource has it
}

// A Parser reads an event stream.
type Parser struct {
	scanner *bufio.Scanner
	lastID  string
	Retry   time.Duration // what the stream asked for last
}

// LastID returns the last event id, as a client sends it when it comes back.
func (p *Parser) LastID() string { return p.lastID }

// maxLine has room for the largest event of the tests.
const maxLine = 1 << 20

// NewParser returns a Parser of r whose last event id is lastID.
func NewParser(r io.Reader, lastID string) *Parser {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 512), maxLine)
	s.Split(splitLine)
	return &Parser{scanner: s, lastID: lastID}
}

// Next returns the next event. An event that the end of the stream cuts off
// does not count.
func (p *Parser) Next() (Event, error) {
	var e Event
	var data []string
	for p.scanner.Scan() {
		line := p.scanner.Bytes()
		if len(line) == 0 {
			if data == nil {
				e.Type = "" // nothing to dispatch
				continue
			}
			return p.dispatch(e, data), nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.Type = string(value)
		case "data":
			data = append(data, string(value))
		case "id":
			if !bytes.ContainsRune(value, 0) {
				p.lastID = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				p.Retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	if err := p.scanner.Err(); err != nil {
		return Event{}, err
	}
	return Event{}, io.EOF
}

func (p *Parser) dispatch(e Event, data []string) Event {
	e.ID = p.lastID
	if e.Type == "" {
		e.Type = "message"
	}
	for i, line := range data {
		if i > 0 {
			e.Data += "\n"
		}
		e.Data += line
	}
	return e
}

// splitLine ends lines at CR LF, LF or CR. It lets go of a line only once it
// has seen what follows a CR, or its end.
func splitLine(data []byte, atEOF bool) (advance int, token []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0:
		return 0, nil, nil // a line without its end does not count
	case data[i] == '\n':
		return i + 1, data[:i], nil
	case i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	case i+1 < len(data) || atEOF:
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}
