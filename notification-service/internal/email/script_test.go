package email_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/platform/event"
)

// Whatever a mail server does, and at whichever point, no mail is lost: it arrives,
// or the server has refused it for good. One arrives twice only after a try whose
// end nobody can tell, and then under the same Message-ID.
func TestServerByScript(t *testing.T) {
	t.Parallel()
	points := []string{"greeting", "EHLO", "MAIL", "RCPT", "DATA", "text", "end"}
	for name, tt := range map[string]struct {
		does deed
		dead []string // the points at which it ends a mail
	}{
		"drops the connection":              {does: deed{drop: true}},
		"keeps it, and drops":               {does: deed{drop: true, keep: true}},
		"stops answering":                   {does: deed{silent: true}},
		"keeps it, and says nothing":        {does: deed{silent: true, keep: true}},
		"is slow":                           {does: deed{pause: 50 * time.Millisecond}},
		"closes the service":                {does: deed{answer: "421 4.3.2 closing"}},
		"defers":                            {does: deed{answer: "450 4.2.0 later"}},
		"has a failure of its own":          {does: deed{answer: "451 4.3.0 local error"}},
		"refuses without a reason":          {does: deed{answer: "554 no"}},
		"refuses what is in the mail":       {does: deed{answer: "554 5.6.0 no"}, dead: []string{"RCPT", "DATA", "end"}},
		"says what is not an answer at all": {does: deed{answer: "hello"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, server := newWorld(t), newScriptServer(t)
			w.config.Server.Port, w.config.MailTimeout = server.port, 2*time.Second
			w.start()
			for i, point := range points {
				user := fmt.Sprintf("user%d", i)
				w.contact(user, fmt.Sprintf("%s@host%d.example.org", user, i), event.StatusUpdatedKey)
				server.script(point, tt.does)
				w.status(user, "Pothole", true)
				w.dueUntil(`select count(*) from deliveries where state in ('done', 'dead')`, int64(i+1))
				if !server.done() {
					t.Errorf("%s: nobody came so far", point)
				}
				dead := w.number(`select count(*) from deliveries where state = 'dead' and lane = $1`, w.keys.Lane(fmt.Sprintf("u@host%d.example.org", i)))
				if want := slices.Contains(tt.dead, point); (dead == 1) != want {
					t.Errorf("%s: the mail is given up: %t, want %t", point, dead == 1, want)
				}
			}
			w.checkArrivals(server)
		})
	}
}

// checkArrivals holds what a server has against what the ledger says.
func (w *world) checkArrivals(s *scriptServer) {
	w.t.Helper()
	arrived := make(map[int64]int64)
	for _, data := range s.mails() {
		token, _, _ := strings.Cut(strings.TrimPrefix(messageID(data), "<"), "@")
		id, ok := w.keys.Delivery(token)
		if !ok {
			w.t.Errorf("a mail of nobody's: %.200s", data)
		}
		arrived[id]++
	}
	for id := int64(1); id <= w.number(`select max(id) from deliveries`); id++ {
		done := w.number(`select count(*) from deliveries where id = $1 and state = 'done'`, id)
		uncertain := w.number(`select count(*) from delivery_attempts where delivery_id = $1 and class = 'uncertain'`, id)
		if arrived[id] < done || arrived[id] > done+uncertain {
			w.t.Errorf("delivery %d has arrived %d times, was accepted %d times and is uncertain %d times", id, arrived[id], done, uncertain)
		}
	}
}

// Where the way in is encrypted and has a password, no step of it costs a mail an
// attempt, whatever the server does there.
func TestWayInByScript(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]deed{
		"drops the connection": {drop: true}, "stops answering": {silent: true},
		"is busy": {answer: "454 4.7.0 later"}, "refuses": {answer: "535 5.7.8 who are you"}, "closes the service": {answer: "421 closing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, server := newWorld(t), newScriptServer(t)
			certificate, roots := newCertificate(t, "127.0.0.1", time.Now().Add(time.Hour))
			server.tls = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
			w.roots = roots
			w.config.Server = email.Server{Host: "127.0.0.1", Port: server.port, TLS: email.StartTLS, User: "city", Password: "secret"}
			w.config.MailTimeout = 2 * time.Second
			w.start()
			for i, point := range []string{"STARTTLS", "handshake", "AUTH"} {
				if point == "handshake" && does.answer != "" {
					continue // there is none in it
				}
				user := fmt.Sprintf("user%d", i)
				w.contact(user, user+"@example.org", event.StatusUpdatedKey)
				server.script(point, does)
				w.status(user, "Pothole", true)
				w.dueUntil(`select count(*) from deliveries where state <> 'done'`, 0)
				if !server.done() {
					t.Errorf("%s: nobody came so far", point)
				}
			}
			if n := w.number(`select count(*) from deliveries where attempts <> 1`); n != 0 {
				t.Errorf("%d mails have other than one attempt", n)
			}
			w.checkArrivals(server)
			if strings.Contains(w.log.String(), "secret") {
				t.Error("the log has the password")
			}
		})
	}
}

// A deed is what a server does at a point of the protocol instead of what is right.
type deed struct {
	answer string        // this, in place of the right one
	drop   bool          // the connection
	silent bool          // for as long as the client waits
	keep   bool          // the mail, if it has all of it: it arrives, although the client is not told
	pause  time.Duration // before the right answer
}

// A scriptServer speaks SMTP line by line, so that it can do what no server's
// library does. Its points are greeting, the commands, text (in its middle), end
// (after the final dot) and handshake (of TLS).
type scriptServer struct {
	t    *testing.T
	port int
	tls  *tls.Config // nil offers no STARTTLS

	mu    sync.Mutex
	at    string // the next deed is done there, once
	does  deed
	conns []net.Conn
	kept  [][]byte
}

func newScriptServer(t *testing.T) *scriptServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scriptServer{t: t, port: listener.Addr().(*net.TCPAddr).Port}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			serving.Go(func() {
				defer conn.Close()
				s.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.script("", deed{})
		serving.Wait()
	})
	return s
}

// script sets what the server does next, and where. It closes all connections, so
// that the next mail comes by a new one.
func (s *scriptServer) script(at string, does deed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.does = at, does
	for _, conn := range s.conns {
		_ = conn.Close()
	}
	s.conns = nil
}

// done reports whether the server has done what it was to do.
func (s *scriptServer) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at == ""
}

// mails returns what has arrived.
func (s *scriptServer) mails() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept)
}

// take returns what the server does at a point.
func (s *scriptServer) take(point string) deed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != point {
		return deed{}
	}
	s.at = ""
	return s.does
}

// act does a deed, or gives the right answer, and reports whether the right one was
// given.
func act(conn net.Conn, d deed, right string) bool {
	switch {
	case d.drop:
		_ = conn.Close()
		return false
	case d.silent:
		_, _ = io.Copy(io.Discard, conn)
		return false
	case d.answer != "":
		_, _ = fmt.Fprintf(conn, "%s\r\n", d.answer)
		if strings.HasPrefix(d.answer, "421") {
			_ = conn.Close()
		}
		return false
	case d.pause > 0:
		<-time.After(d.pause)
	}
	_, err := fmt.Fprintf(conn, "%s\r\n", right)
	return err == nil
}

// serve serves one connection until it ends.
func (s *scriptServer) serve(conn net.Conn) {
	act(conn, s.take("greeting"), "220 script.example.org")
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		command, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " ")
		switch command {
		case "EHLO":
			extensions := "250-script.example.org\r\n250-ENHANCEDSTATUSCODES\r\n250-AUTH PLAIN\r\n250 DSN"
			if _, encrypted := conn.(*tls.Conn); s.tls != nil && !encrypted {
				extensions = "250-script.example.org\r\n250 STARTTLS"
			}
			act(conn, s.take(command), extensions)
		case "STARTTLS":
			if !act(conn, s.take(command), "220 go on") {
				continue
			}
			if d := s.take("handshake"); d != (deed{}) {
				act(conn, d, "")
				return
			}
			conn = tls.Server(conn, s.tls)
			lines = bufio.NewReader(conn)
		case "AUTH":
			act(conn, s.take(command), "235 welcome")
		case "DATA":
			if act(conn, s.take(command), "354 go on") {
				s.text(conn, lines)
			}
		case "QUIT":
			act(conn, s.take(command), "221 bye")
			return
		default: // MAIL, RCPT, RSET, HELO
			act(conn, s.take(command), "250 ok")
		}
	}
}

// text reads a mail up to its final dot.
func (s *scriptServer) text(conn net.Conn, lines *bufio.Reader) {
	var data []byte
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // it broke off
		}
		if string(line) == ".\r\n" {
			break
		}
		data = append(data, line...)
		if d := s.take("text"); d.drop || d.silent {
			act(conn, d, "")
			return
		}
	}
	d := s.take("end")
	if d.keep || !d.drop && !d.silent && d.answer == "" {
		s.mu.Lock()
		s.kept = append(s.kept, data)
		s.mu.Unlock()
	}
	act(conn, d, "250 2.0.0 ok")
}
