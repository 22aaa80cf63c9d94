package webhook

import (
	"strconv"
	"time"
)

// UserAgent identifies our requests.
const UserAgent = "CityConnect-Webhooks/1"

// ShownHeaders returns the headers that an attempt carried, for an operator.
// Signatures are not among them: with one, the body could be sent again for five
// minutes. Nor is the trace context, whose span nobody keeps.
func ShownHeaders(messageID string, at time.Time) map[string]string {
	return map[string]string{
		"Content-Type": "application/json", "User-Agent": UserAgent,
		"webhook-id": messageID, "webhook-timestamp": strconv.FormatInt(at.Unix(), 10),
	}
}
