package event

import (
	"strings"

	"github.com/google/uuid"
)

// CallerPrefix begins the ids of callers.
const CallerPrefix = "caller:"

// NewCaller returns the id of a caller: somebody for whom an official files one report. It
// is a reporter's id like any other, so that messages about the report look like all
// others. It is random, is that of one report alone, and nobody signs in with it.
func NewCaller() string { return CallerPrefix + uuid.NewString() }

// IsCaller reports whether userID is that of a caller.
func IsCaller(userID string) bool { return strings.HasPrefix(userID, CallerPrefix) }
