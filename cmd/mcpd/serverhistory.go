package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/history"
)

// recorder stores the revisions that a server serves. The store is opened when there is a second
// revision or a request for the history, so that a server whose files never change needs no state file.
type recorder struct {
	wake    chan struct{} // receives a value when there is something to store
	storing sync.Mutex    // held while revisions are stored, so that their order is kept

	// guarded by mu
	mu      sync.Mutex
	pending []*history.Revision // not stored yet, oldest first
	inUse   bool                // something else uses the store, or it has been opened
}

// noteRevision queues the serving revision for the history; reloading is held, or nothing reloads
// yet. It does not read the files, so that it does not delay a reload.
func (o *runningServer) noteRevision() {
	files := o.project()
	if files == nil {
		return
	}
	r := &history.Revision{Name: o.server.Status().Revision, Time: o.env.now(), Files: files}
	if m := o.flags.bundle.files.Manifest(); m != nil {
		r.Bundle, r.Serial = m.Name, m.Serial
	}
	if dropped := o.history.queue(r); dropped != nil {
		o.logger.Warn("drop revision from history", slog.String("revision", dropped.Name))
	}
}

// project returns the files of the serving snapshot by their paths in a project, and nil if the files
// on disk were refused since.
func (o *runningServer) project() map[string][]byte {
	status := o.server.Status()
	if !status.Synchronized {
		return nil
	}
	return o.server.Inside().Project(status)
}

// queue adds a revision. It returns the oldest one, which is lost, if too many wait.
func (h *recorder) queue(r *history.Revision) (dropped *history.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending = append(h.pending, r); len(h.pending) > history.MaxRevisions {
		dropped = h.pending[0]
		h.pending = slices.Delete(h.pending, 0, 1)
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return dropped
}

// merge removes queued revisions with the files of the one before them. It returns whether the
// others need the store. storing is held.
func (h *recorder) merge() bool {
	h.mu.Lock()
	queued := slices.Clone(h.pending)
	h.mu.Unlock()
	same := map[*history.Revision]bool{}
	for i, before := 1, ""; i < len(queued); i++ {
		if i == 1 {
			before = history.SumsOf(queued[0].Files).Digest()
		}
		digest := history.SumsOf(queued[i].Files).Digest()
		same[queued[i]], before = digest == before, digest
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = slices.DeleteFunc(h.pending, func(r *history.Revision) bool { return same[r] })
	return h.inUse || len(h.pending) > 1
}

// recordHistory stores queued revisions until ctx ends.
func (o *runningServer) recordHistory(ctx context.Context) {
	h := &o.history
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
			h.storing.Lock()
			needed := h.merge()
			h.storing.Unlock()
			if !needed {
				continue
			}
			if _, err := o.storeHistory(); err != nil {
				o.logger.Warn("record history", slog.String("error", err.Error()))
			}
		}
	}
}

// storeHistory stores all queued revisions and returns the store. After an error they stay queued.
func (o *runningServer) storeHistory() (state.Pairs, error) {
	h := &o.history
	h.storing.Lock()
	defer h.storing.Unlock()
	store, err := o.server.Inside().State()
	if err != nil {
		return nil, err
	}
	for {
		r := h.next()
		if r == nil {
			return store, nil
		}
		if err := history.Add(store, *r); errors.Is(err, history.ErrReplaced) {
			o.logger.Warn("replace damaged history", slog.String("error", err.Error()))
		} else if err != nil {
			return nil, err
		}
		h.mu.Lock()
		h.pending = slices.DeleteFunc(h.pending, func(queued *history.Revision) bool { return queued == r })
		h.mu.Unlock()
	}
}

// next returns the oldest queued revision, or nil.
func (h *recorder) next() *history.Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inUse = true
	if len(h.pending) == 0 {
		return nil
	}
	return h.pending[0]
}

// historyResult is the JSON output of history.
type historyResult struct {
	Revisions []history.Entry `json:"revisions"`
}

// filesResult has the files of a revision for the verbs history export and rollback.
type filesResult struct {
	Entry history.Entry     `json:"revision"`
	Files map[string][]byte `json:"files"`
	// Serving has the digests of the files in service; nil if the files on disk were refused since.
	Serving history.Sums `json:"serving"`
	Bundle  bool         `json:"bundle"`
}

// answerHistory answers a request for the list of revisions, or for the files of one.
func (o *runningServer) answerHistory(r control.Request) (any, error) {
	store, err := o.storeHistory()
	if err != nil {
		return nil, err
	}
	entries, err := history.List(store)
	switch {
	case err != nil:
		return nil, err
	case r.Revision == "":
		return answerOf(historyResult{append([]history.Entry{}, entries...)}, nil, nil, r)
	}
	row := filesResult{Bundle: o.flags.bundle.follower != nil}
	if files := o.project(); files != nil {
		row.Serving = history.SumsOf(files)
	}
	if r.Revision == control.Previous {
		row.Entry, err = o.previous(entries, row.Serving)
	} else {
		row.Entry, err = history.Find(entries, r.Revision)
	}
	if err == nil {
		row.Files, err = history.Read(store, row.Entry)
	}
	if err != nil {
		return nil, err
	}
	return answerOf(row, nil, nil, r)
}

// previous returns the newest revision before the one that serves. It needs a history that no other
// server writes. If the files in a directory were
// refused, it returns the one that serves, as the refused one has no place in the history.
func (o *runningServer) previous(entries []history.Entry, serving history.Sums) (history.Entry, error) {
	digest, revision := serving.Digest(), o.server.Status().Revision
	i := slices.IndexFunc(entries, func(e history.Entry) bool {
		return serving != nil && e.Digest == digest || serving == nil && e.Revision == revision
	})
	if serving == nil && o.flags.bundle.follower == nil {
		if i < 0 {
			return history.Entry{}, history.ErrNotFound
		}
		return entries[i], nil
	}
	if store, err := o.server.Inside().State(); err == nil {
		if _, shared := store.(state.Shared); shared {
			return history.Entry{}, errors.New("replicas share this history, so the revision before may belong to another replica; name a revision of mcpd history")
		}
	}
	for _, e := range entries[i+1:] {
		if i >= 0 && e.Digest != entries[i].Digest {
			return e, nil
		}
	}
	return history.Entry{}, errors.New("the history has no revision before the one that serves")
}

// historyPatience is the timeout of a request for the history, which may open the state store.
const historyPatience = 30 * time.Second
