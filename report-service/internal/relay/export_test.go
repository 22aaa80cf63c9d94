package relay

import "time"

// ManifestsEvery makes r publish manifests of shorter times, and sooner.
func (r *Relay) ManifestsEvery(every, settled time.Duration) {
	r.manifests.every, r.manifests.settled = every, settled
}
