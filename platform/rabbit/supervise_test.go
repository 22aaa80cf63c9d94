package rabbit_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// One broker is broken in all these ways: to start one takes its time.
func TestBrokerFaults(t *testing.T) {
	t.Parallel()
	server := rabbittest.StartServer(t)
	t.Run("blocked", func(t *testing.T) { testBlocked(t, server) })
	for _, fault := range []struct {
		name        string
		break_, fix func()
	}{
		{"pause", server.Pause, server.Resume},
		{"stop", server.Stop, server.Start},
		{"kill", server.Kill, server.Start},
	} {
		t.Run(fault.name, func(t *testing.T) { testSuperviseOver(t, server, fault.break_, fault.fix) })
	}
	t.Run("hang", func(t *testing.T) { testHang(t, server) })
}

// testHang makes connections of the broker hang. They are given up: a publisher
// that is closed has its outcome, and who asks gets an error.
func testHang(t *testing.T, server *rabbittest.Server) {
	cfg := rabbit.Config{URL: server.URL(), Name: t.Name(), Log: zerolog.Nop(), Heartbeat: time.Second}
	var connections [2]*amqp.Connection
	for i := range connections {
		conn, err := rabbit.Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		connections[i] = conn
	}
	declareQueue(t, connections[0], "hanging")
	publisher := newPublisher(t, connections[0])
	server.Hang()

	outcome := make(chan rabbit.Outcome, 1)
	if err := publisher.Publish("", "hanging", message("x"), func(o rabbit.Outcome) { outcome <- o }); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		publisher.Close()
		close(closed)
	}()
	asked := make(chan error, 1)
	go func() { asked <- rabbit.DeclareExchange(connections[1], "hanging", amqp.ExchangeFanout) }()
	if o := receive(t, outcome); o.Result != rabbit.Lost {
		t.Errorf("outcome %v, want lost", o)
	}
	receive(t, closed)
	if err := receive(t, asked); err == nil {
		t.Error("declared an exchange over a connection that hangs")
	}
}

// testSuperviseOver breaks the broker: the session ends with the connection,
// and a new one follows.
func testSuperviseOver(t *testing.T, server *rabbittest.Server, break_, fix func()) {
	sessions := make(chan context.Context)
	cfg := rabbit.Config{URL: server.URL(), Name: t.Name(), Log: zerolog.Nop(), Heartbeat: time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- rabbit.Supervise(ctx, cfg, func(ctx context.Context, conn *amqp.Connection) error {
			sessions <- ctx
			<-ctx.Done()
			return nil
		})
	}()
	session := receive(t, sessions)
	break_()
	receive(t, session.Done()) // noticed while the broker is still away
	fix()
	t.Logf("ended by: %v", context.Cause(session))
	receive(t, sessions)
	cancel()
	if err := receive(t, ended); err != nil {
		t.Errorf("Supervise: %v, want nil after cancelling", err)
	}
}

// testBlocked raises the disk alarm: a publisher learns that it is blocked,
// and goes on afterwards without losing anything.
func testBlocked(t *testing.T, server *rabbittest.Server) {
	conn := dial(t, server.URL())
	declareQueue(t, conn, "q")
	publisher := newPublisher(t, conn)
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 4))

	server.SetDiskAlarm(true)
	outcome := make(chan rabbit.Outcome, 1)
	if err := publisher.Publish("", "q", message("x"), func(o rabbit.Outcome) { outcome <- o }); err != nil {
		t.Fatal(err)
	}
	if b := receive(t, blocked); !b.Active {
		t.Errorf("blocked = %v, want active", b)
	}
	server.SetDiskAlarm(false)
	if b := receive(t, blocked); b.Active {
		t.Errorf("blocked = %v, want inactive", b)
	}
	if o := receive(t, outcome); o.Result != rabbit.Acked {
		t.Errorf("outcome %v, want acked", o)
	}
}

// The guard is asked before every write, and its no sends nothing.
func TestGuardStopsTheWrite(t *testing.T) {
	t.Parallel()
	url := rabbittest.Vhost(t)
	reader := dial(t, url)
	declareQueue(t, reader, "q")
	var refuse atomic.Bool
	conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: url, Guard: func() error {
		if refuse.Load() {
			return errors.New("closed")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	publisher := newPublisher(t, conn)
	if err := publisher.PublishWait(t.Context(), "", "q", message("allowed")); err != nil {
		t.Fatal(err)
	}
	refuse.Store(true)
	if err := publisher.PublishWait(t.Context(), "", "q", message("forbidden")); err == nil {
		t.Error("publish against the guard: success, want an error")
	}
	receive(t, conn.NotifyClose(make(chan *amqp.Error, 1)))
	q, err := must(reader.Channel()).QueueDeclarePassive("q", true, false, false, false, nil)
	if err != nil || q.Messages != 1 {
		t.Errorf("queue holds %d messages (error %v), want the allowed one", q.Messages, err)
	}
}

// A malformed URL ends Supervise at once, and its password is not repeated.
func TestMalformedURL(t *testing.T) {
	t.Parallel()
	err := rabbit.Supervise(t.Context(), rabbit.Config{URL: "amqp://user:s3cret@host:port/"}, nil)
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("Supervise = %v, want an error without the password", err)
	}
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(eventually.Patience):
		t.Fatal("nothing happened in time")
		panic("unreachable")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
