package retention

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Period is how long something is kept. The zero Period keeps it for ever.
type Period time.Duration

// shortest keeps a period longer than anything takes that reads removed rows: the
// repair of a stream, an open page, a message on its way.
const shortest = 24 * time.Hour

// UnmarshalText reads "never" or "0", a number of days such as "365d", or a
// duration of Go such as "72h".
func (p *Period) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "never" || s == "0" {
		*p = 0
		return nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return fmt.Errorf("read days: %w", err)
		}
		*p = Period(n) * Period(24*time.Hour)
	} else {
		d, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("read period: %w", err)
		}
		*p = Period(d)
	}
	if time.Duration(*p) < shortest {
		return errors.New("read period: too short")
	}
	return nil
}
