package photoworker

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
)

const (
	// upkeepEvery is about how often useless files are deleted, and how long a
	// photo waits at most whose message is a dead letter.
	upkeepEvery = 20 * time.Second
	// orphansEvery is about how often files without a photo are searched:
	// uploads that broke off before their row was written.
	orphansEvery = time.Hour
	// orphanAge is the minimum age of such a file: no upload takes that long.
	orphanAge = 24 * time.Hour
	// upkeepTimeout bounds a turn, and upkeepRows its work of each kind.
	upkeepTimeout = 5 * time.Minute
	upkeepRows    = 1000
)

// RunUpkeep deletes useless files until ctx ends, and refuses photos that the
// worker cannot finish. Any number of replicas may run it at the same time.
func (w *Worker) RunUpkeep(ctx context.Context, queue string) error {
	var orphansAt time.Time // of the next search; soon after the start
	for ctx.Err() == nil {
		turn, cancel := context.WithTimeout(ctx, upkeepTimeout)
		err := w.Upkeep(turn, queue)
		if err == nil && time.Now().After(orphansAt) {
			if err = w.RemoveOrphans(turn, time.Now().Add(-orphanAge)); err == nil {
				orphansAt = time.Now().Add(backoff.Jitter(orphansEvery))
			}
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			w.Log.Warn().Str("error", pgpool.LogText(err)).Msg("upkeep of photos failed, will retry")
		}
		_ = backoff.Sleep(ctx, backoff.Jitter(upkeepEvery)) // the loop ends with ctx
	}
	return nil
}

// Upkeep refuses the photos whose messages are dead letters of queue, and
// deletes leftover files of finished photos.
func (w *Worker) Upkeep(ctx context.Context, queue string) error {
	refused, err := w.Store.RefuseDead(ctx, queue)
	if err != nil {
		return fmt.Errorf("refuse photos: %w", err)
	}
	if refused > 0 {
		w.Log.Error().Int("photos", refused).Msg("photos were refused because the worker could not finish them")
	}
	leftovers, err := w.Store.Leftovers(ctx, upkeepRows)
	if err != nil {
		return err
	}
	for _, l := range leftovers {
		if err := w.clean(ctx, l); err != nil {
			return fmt.Errorf("delete leftover: %w", err)
		}
	}
	return nil
}

// RemoveOrphans deletes files from before a time that belong to no photo.
func (w *Worker) RemoveOrphans(ctx context.Context, before time.Time) error {
	for _, folder := range []struct {
		prefix string
		// name returns the name of a key for unknown, or "" for a key that
		// belongs to nothing.
		name    func(key string) string
		unknown func(ctx context.Context, names []string) ([]string, error)
	}{
		{picture.Quarantine, func(key string) string { return key }, w.Store.UnknownUploads},
		{picture.Folder, photoOf, w.Store.UnknownPhotos},
		{"tmp/", func(string) string { return "" }, nil}, // files of a process that died while writing
	} {
		keys := make(map[string][]string) // by their names
		for object, err := range w.Files.List(ctx, folder.prefix) {
			if err != nil {
				return err
			}
			if object.ModifiedAt.Before(before) {
				name := folder.name(object.Key)
				keys[name] = append(keys[name], object.Key)
			}
			if len(keys) == upkeepRows {
				if err := w.removeUnknown(ctx, keys, folder.unknown); err != nil {
					return err
				}
				clear(keys)
			}
		}
		if err := w.removeUnknown(ctx, keys, folder.unknown); err != nil {
			return err
		}
	}
	return nil
}

// removeUnknown deletes the files whose names unknown returns, and those
// without a name.
func (w *Worker) removeUnknown(ctx context.Context, keys map[string][]string, unknown func(context.Context, []string) ([]string, error)) error {
	names := slices.DeleteFunc(slices.Collect(maps.Keys(keys)), func(name string) bool { return name == "" })
	remove := []string{""}
	if len(names) > 0 {
		found, err := unknown(ctx, names)
		if err != nil {
			return err
		}
		remove = append(remove, found...)
	}
	for _, name := range remove {
		for _, key := range keys[name] {
			if err := w.Files.Delete(ctx, key); err != nil {
				return err
			}
			w.orphans.Inc()
		}
	}
	return nil
}

// photoOf returns the id of the photo whose picture has a key.
func photoOf(key string) string {
	id := strings.TrimPrefix(path.Dir(key), picture.Folder)
	if _, err := uuid.Parse(id); err != nil {
		return ""
	}
	return id
}
