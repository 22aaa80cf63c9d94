// Package clamd scans files for viruses with ClamAV's daemon.
package clamd

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

const (
	// chunkBytes is how much of a file is sent in one piece.
	chunkBytes = 64 << 10
	// timeout is how long a scan may take: clamd itself gives up a file after
	// two minutes, and scans a picture in a few milliseconds.
	timeout = 30 * time.Second
	// maxAnswer is far above clamd's answers, which contain the name of a
	// virus.
	maxAnswer = 4 << 10
)

// A Scanner is a clamd that listens at an address.
type Scanner struct{ network, address string }

// Example shows what an address looks like.
const Example = "tcp://clamd:3310 or unix:///run/clamav/clamd.ctl"

// New returns the scanner at rawURL: tcp://host:port or unix:///path.
func New(rawURL string) (*Scanner, error) {
	u, err := url.Parse(rawURL)
	if err == nil {
		switch {
		case u.Scheme == "tcp" && u.Port() != "" && u.Path == "":
			return &Scanner{"tcp", u.Host}, nil
		case u.Scheme == "unix" && u.Host == "" && u.Path != "":
			return &Scanner{"unix", u.Path}, nil
		}
	}
	return nil, fmt.Errorf("the address of clamd must be %s", Example)
}

// Infected reports whether clamd finds a virus in file. An error says nothing
// about the file.
func (s *Scanner) Infected(ctx context.Context, file []byte) (bool, error) {
	answer, err := s.ask(ctx, "zINSTREAM\x00", file)
	if err != nil {
		return false, fmt.Errorf("scan file: %w", err)
	}
	switch {
	case answer == "stream: OK":
		return false, nil
	case strings.HasPrefix(answer, "stream: ") && strings.HasSuffix(answer, " FOUND"):
		return true, nil
	}
	return false, errors.New("scan file: clamd could not") // without its answer, which may quote the file
}

// Check returns nil if clamd answers.
func (s *Scanner) Check(ctx context.Context) error {
	answer, err := s.ask(ctx, "zPING\x00", nil)
	if err != nil {
		return fmt.Errorf("ping clamd: %w", err)
	}
	if answer != "PONG" {
		return errors.New("ping clamd: the answer is not PONG")
	}
	return nil
}

// ask sends a command, and a file in pieces that say how long they are (man 8
// clamd, INSTREAM), and returns the answer.
func (s *Scanner) ask(ctx context.Context, command string, file []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, s.network, s.address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends the current read or write
	defer stop()

	w := bufio.NewWriterSize(conn, chunkBytes+8)
	_, err = w.WriteString(command)
	size := make([]byte, 4)
	for rest := file; err == nil && len(rest) > 0; {
		chunk := rest[:min(len(rest), chunkBytes)]
		rest = rest[len(chunk):]
		binary.BigEndian.PutUint32(size, uint32(len(chunk)))
		if _, err = w.Write(size); err == nil {
			_, err = w.Write(chunk)
		}
	}
	if err == nil && file != nil {
		_, err = w.Write([]byte{0, 0, 0, 0}) // the end
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return "", fmt.Errorf("send: %w", err)
	}
	answer, err := bufio.NewReaderSize(conn, maxAnswer).ReadSlice(0)
	if err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return string(answer[:len(answer)-1]), nil
}
