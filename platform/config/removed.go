package config

import (
	"slices"

	"github.com/rs/zerolog"
)

// removed are the variables that programs had once, and have as constants now.
var removed = []string{
	"CONSUMER_BATCH_SIZE", "CONSUMER_BATCH_WAIT", "CONSUMER_STALL_AFTER", "CONSUMER_TIMEOUT",
	"DELAY_RELEASE_RATE",
	"MAIL_CONNECTIONS", "MAIL_TIMEOUT",
	"OPEN311_PER_KEY",
	"PHOTO_MAX_PIXELS", "PHOTO_PROCESSOR_SHARE", "PHOTO_TIMEOUT", "PHOTO_WORKERS",
	"READ_MARKS_RETENTION",
	"RELAY_CONFIRM_TIMEOUT", "RELAY_MAX_ATTEMPTS", "RELAY_POLL_MAX", "RELAY_POLL_MIN", "RELAY_RETRY_MAX", "RELAY_RETRY_MIN", "RELAY_WINDOW",
	"STREAM_LIFETIME", "STREAM_MAX_PER_USER", "STREAM_RECONNECT_RATE", "STREAM_WRITER", "STREAM_WRITE_TIMEOUT",
	"WEBHOOK_CONCURRENCY", "WEBHOOK_DISABLE_AFTER", "WEBHOOK_TIMEOUT",
}

// WarnOfRemoved names the variables of an environment that have lost their effect, so
// that nobody counts on them.
func WarnOfRemoved(log zerolog.Logger, getenv func(string) string) {
	found := slices.DeleteFunc(slices.Clone(removed), func(name string) bool { return getenv(name) == "" })
	if len(found) > 0 {
		log.Warn().Strs("variables", found).Msg("these variables no longer have an effect, see docs/upgrading.md for the values that hold")
	}
}
