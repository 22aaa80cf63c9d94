package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A lossyBroker is a proxy before a broker that confirms each message of an exchange and
// loses one in so many: it gives that a routing key for which nothing is bound, and takes
// away that an unroutable message is to be returned.
type lossyBroker struct {
	url      string
	exchange string
	key      string // of the messages that may get lost
	every    atomic.Int64
	seen     atomic.Int64
	lost     atomic.Int64
}

func startLossyBroker(t *testing.T, direct, exchange, key string, every int64) *lossyBroker {
	t.Helper()
	u := must(url.Parse(direct))
	broker := u.Host
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	u.Host = listener.Addr().String()
	b := &lossyBroker{url: u.String(), exchange: exchange, key: key}
	b.every.Store(every)
	var carrying sync.WaitGroup
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	carrying.Go(func() {
		for client, err := listener.Accept(); err == nil; client, err = listener.Accept() {
			server, err := net.Dial("tcp", broker)
			if err != nil {
				_ = client.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _ = server.Close() })
			carrying.Go(func() { _ = b.forward(server, client); _ = server.Close() })
			carrying.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); end(); carrying.Wait() })
	return b
}

// forward passes on what a client sends, frame by frame.
func (b *lossyBroker) forward(server io.Writer, client io.Reader) error {
	in := bufio.NewReader(client)
	if _, err := io.CopyN(server, in, int64(len("AMQP0091"))); err != nil {
		return err
	}
	const header = 7 // kind, channel and size; an end of one byte follows the payload
	for {
		frame := make([]byte, header)
		if _, err := io.ReadFull(in, frame); err != nil {
			return err
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame[3:])+1)...)
		if _, err := io.ReadFull(in, frame[header:]); err != nil {
			return err
		}
		const method = 1
		if frame[0] == method {
			b.lose(frame[header:])
		}
		if _, err := server.Write(frame); err != nil {
			return err
		}
	}
}

// lose changes a method if it is a basic.publish of a message that is to get lost.
func (b *lossyBroker) lose(payload []byte) {
	begin := append([]byte{0, 60, 0, 40, 0, 0, byte(len(b.exchange))}, b.exchange...)
	begin = append(append(begin, byte(len(b.key))), b.key...)
	if !bytes.HasPrefix(payload, begin) || b.seen.Add(1)%b.every.Load() != 0 {
		return
	}
	b.lost.Add(1)
	copy(payload[len(begin)-len(b.key):], bytes.Repeat([]byte("x"), len(b.key)))
	payload[len(begin)] &^= 1 // mandatory
}

// Messages that the broker has confirmed and lost are named, each of them and no other,
// and have their effect once they are published again. LOSE=100/1000 loses another share.
func TestConfirmedAndLostIsNamed(t *testing.T) {
	t.Parallel()
	lose, every := int64(20), int64(20)
	if share := os.Getenv("LOSE"); share != "" {
		if _, err := fmt.Sscanf(share, "%d/%d", &lose, &every); err != nil {
			t.Fatalf("LOSE must be such as 100/1000: %v", err)
		}
	}
	r := prepareStack(t).reconcile(10 * time.Second)
	broker := startLossyBroker(t, r.brokerURL, topology.Exchange(), string(event.ReportCreatedKey), every)
	r.report.env["RABBITMQ_URL"] = broker.url
	r.start()
	r.operator = r.userOf("otto", "operator")
	ana := r.signIn("Ana", "resident")
	var filing sync.WaitGroup
	for range 8 {
		filing.Go(func() {
			for broker.lost.Load() < lose && !t.Failed() {
				file(t, ana, "Pothole")
			}
		})
	}
	filing.Wait()
	r.awaitPublished(time.Time{})
	lost := int(broker.lost.Load()) // some were filed when the last was lost
	published := time.Now()

	var named []uuid.UUID
	eventually.NothingMissing(t, "all are named", func() string {
		if s := r.summary(); int(s.Missing) != lost {
			return fmt.Sprintf("%d of %d", s.Missing, lost)
		}
		named = r.missing("notifications")
		return ""
	})
	took := time.Since(published)
	// A client sees a page of them.
	if took > 2*time.Minute || len(named) == 0 || len(named) > lost {
		t.Errorf("%d of %d are named after %s, want all within 2 minutes", len(named), lost, took)
	}
	broker.every.Store(1 << 60)
	var again int64
	for len(named) > 0 {
		var done struct{ Republished int64 }
		body := map[string]any{"message_ids": named, "reason": "lost by the broker"}
		if err := r.operator.Do(t.Context(), http.MethodPost, "/admin/outbox/messages/republish", body, &done); err != nil {
			t.Fatalf("publish again: %v", err)
		}
		again += done.Republished
		before := len(named)
		eventually.True(t, "they are found", func() bool { return r.summary().Missing == int64(lost)-again })
		if named = r.missing("notifications"); len(named) == before && again < int64(lost) {
			t.Fatalf("still missing: %v", named)
		}
	}
	handled := func() (n int64) {
		_ = r.notificationDB.QueryRow(t.Context(), `select count(*) from processed_messages where consumer = $1`, topology.Queue(event.ReportCreatedKey)).Scan(&n)
		return n
	}
	if n, want := handled(), broker.seen.Load()-again; n != want || again != int64(lost) {
		t.Errorf("%d messages have their effect and %d were published again, want %d and %d", n, again, want, lost)
	}
	fmt.Printf("lost=%d of=%d named=%d republished=%d missing=%d named_after=%.0f\n", lost, broker.seen.Load()-again, lost, again, r.summary().Missing, took.Seconds())
}
