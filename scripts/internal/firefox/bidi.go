package firefox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// A connection sends the commands of WebDriver BiDi (https://www.w3.org/TR/webdriver-bidi)
// one after the other, and keeps the events that come before their answers. It is for
// one goroutine.
type connection struct {
	socket *websocket.Conn
	last   int // the latest command's number
	events []message
}

// A message is what the browser sends: the answer to a command, or an event.
type message struct {
	Type    string          `json:"type"` // success, error or event
	ID      int             `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Message string          `json:"message"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// dial connects to the address that Firefox has printed, and begins a session.
func dial(ctx context.Context, address string) (*connection, error) {
	socket, _, err := websocket.Dial(ctx, address+"/session", nil) //nolint:bodyclose // Dial says that nobody needs to
	if err != nil {
		return nil, fmt.Errorf("connect to Firefox: %w", err)
	}
	socket.SetReadLimit(-1) // pictures are large
	c := &connection{socket: socket}
	if err := c.call(ctx, "session.new", object{"capabilities": object{}}, nil); err != nil {
		_ = socket.CloseNow()
		return nil, err
	}
	return c, nil
}

// An object is a JSON object.
type object map[string]any

// call sends a command and waits for its answer, of which result, unless nil, gets
// the result. An answer to an earlier command, whose caller has given up, is ignored.
func (c *connection) call(ctx context.Context, method string, params object, result any) error {
	c.last++
	if err := wsjson.Write(ctx, c.socket, object{"id": c.last, "method": method, "params": params}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	for {
		var m message
		if err := wsjson.Read(ctx, c.socket, &m); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		switch {
		case m.Type == "event":
			c.events = append(c.events, m)
		case m.ID != c.last:
		case m.Type == "error":
			return fmt.Errorf("%s: %s: %s", method, m.Error, m.Message)
		case result == nil:
			return nil
		default:
			if err := json.Unmarshal(m.Result, result); err != nil {
				return fmt.Errorf("%s: read the answer: %w", method, err)
			}
			return nil
		}
	}
}
