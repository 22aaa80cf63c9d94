package forwarder

import "time"

// SetConfirmTimeout sets how long f waits for a confirm.
func (f *Forwarder) SetConfirmTimeout(d time.Duration) { f.confirmTimeout = d }
