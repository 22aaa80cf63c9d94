package erasure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cityconnect/cityconnect/platform/text"
)

// maxID is the longest id that a token may have.
const maxID = 255

// Command has e erase the user whose id is the first line of in, and writes the
// progress to out until it is done. The id comes from in because arguments are seen by
// others and kept by shells. Command works also when no service runs. If it is
// ended, a service goes on, and so does the same command.
func Command(ctx context.Context, e *Eraser, in io.Reader, out io.Writer) error {
	data, err := io.ReadAll(io.LimitReader(in, maxID+2))
	if err != nil {
		return fmt.Errorf("read the user's id: %w", err)
	}
	userID := strings.TrimRight(string(data), "\r\n")
	if userID == "" || len(userID) > maxID || text.CheckID(userID) != nil {
		return errors.New("standard input: must be the id of a user, the sub of their tokens, in one line")
	}
	state, err := e.Request(ctx, "command", userID)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "erasure %s\n", state.ID)
	told := ""
	return e.Finish(ctx, state.ID, func(state Erasure) {
		line := "left: " + strings.Join(state.Left, ", ")
		if state.DoneAt != nil {
			line = fmt.Sprintf("done: %v", state.Removed)
		}
		if line != told {
			fmt.Fprintln(out, line)
			told = line
		}
	})
}
