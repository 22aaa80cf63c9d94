package courier

import "time"

// SetPatience sets how long c waits for a confirm.
func (c *Courier) SetPatience(d time.Duration) { c.patience = d }
