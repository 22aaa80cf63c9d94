package consumer

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// slowFailure is how long a failure may take, with its immediate retries, and still
	// be repeated together with other messages. One that waits for a lock would make its
	// neighbours wait each time.
	slowFailure = 50 * time.Millisecond
	// leastForEach is from how many messages on one by one is better than by halves.
	leastForEach = 3
)

// isolate brings the jobs of a batch that failed to their outcome, so that those that
// fail do so alone: one by one in another transaction, if the effect can do that, or by
// halves, which costs the good ones few transactions, or each in its own transaction if
// the failure was slow.
func (h *handler) isolate(work context.Context, jobs []*job, took time.Duration) {
	if took > slowFailure {
		h.applyParts(work, jobs, 1)
		return
	}
	if effect, ok := h.effect.(EachEffect); ok && len(jobs) >= leastForEach {
		if left := h.applyEach(work, effect, jobs); len(left) < len(jobs) {
			h.applyParts(work, left, 1)
			return
		}
	}
	h.applyParts(work, jobs, (len(jobs)+1)/2)
}

// applyParts applies parts of jobs at the same time, each of size jobs at the most.
func (h *handler) applyParts(work context.Context, jobs []*job, size int) {
	var parts sync.WaitGroup
	for part := range slices.Chunk(jobs, size) {
		parts.Go(func() { h.applyBatch(work, part) })
	}
	parts.Wait()
}

// applyEach gives jobs their effects one by one, brings those that fail for a reason of
// their own to their outcome, and returns the others, which have no effect.
func (h *handler) applyEach(work context.Context, effect EachEffect, jobs []*job) (left []*job) {
	left = slices.Clone(jobs)
	var applied []*job
	failed := make(map[*job]bool) // also by an attempt that ended in an error, or a panic
	isFailed := func(j *job) bool { return failed[j] }
	err := h.withDatabase(work, func(ctx context.Context, probe bool) error {
		if applied, left = nil, slices.DeleteFunc(slices.Clone(jobs), isFailed); probe {
			return h.store.ping(ctx)
		}
		separate, others, err := h.separate(ctx, left)
		if err != nil {
			return err
		}
		start := time.Now()
		has, err := effect.ApplyEach(ctx, h.queue, messages(separate), func(i int, err error) {
			if j := separate[i]; h.isOwn(work, err) {
				failed[j] = true
				h.fail(work, j, err)
			}
		})
		h.metrics.handled(h.queue, time.Since(start), err != nil)
		if err != nil {
			return err
		}
		left = others
		for i, j := range separate {
			if has[i] {
				applied = append(applied, j)
			} else if !failed[j] {
				left = append(left, j)
			}
		}
		return nil
	})
	if err == nil {
		h.done(applied, 0)
	}
	return slices.DeleteFunc(left, isFailed)
}

// isOwn reports whether the error of a message that was tried by itself is its own: the
// database takes changes, and would not take this one a moment later.
func (h *handler) isOwn(work context.Context, err error) bool {
	switch failure.Classify(err) {
	case failure.Permanent:
		return true
	case failure.Transient:
		return !pgpool.Transient(err) && !h.cannotWrite(work)
	default:
		return false
	}
}

// separate parts jobs into those that may have their effects whatever becomes of the
// others, and those that wait for the message before them, which may be one of the jobs.
func (h *handler) separate(ctx context.Context, jobs []*job) (separate, others []*job, err error) {
	ready, others, _, err := h.split(ctx, jobs)
	if err != nil {
		return nil, nil, err
	}
	here := make(map[string]bool, len(jobs))
	for _, j := range jobs {
		here[j.msg.ID] = true
	}
	for _, j := range ready {
		if id, ok := h.previous(j); ok && here[id.String()] {
			others = append(others, j)
		} else {
			separate = append(separate, j)
		}
	}
	return separate, others, nil
}
