package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/history"
)

// recorder stores the revisions that a server serves. The store is opened when there is a second
// revision, so that a server whose files never change needs no state file.
type recorder struct {
	wake    chan struct{} // receives a value when there is something to store
	storing sync.Mutex    // held while revisions are stored, so that their order is kept

	// guarded by mu
	mu      sync.Mutex
	pending []history.Revision // not stored yet, oldest first
	existed bool               // the store is used anyway
}

// noteRevision queues the serving revision for the history; reloading is held, or nothing reloads
// yet.
func (o *runningServer) noteRevision() {
	files := o.server.Inside().Project()
	if files == nil {
		return
	}
	r := history.Revision{Name: o.server.Status().Revision, Time: o.env.now(), Files: files}
	if m := o.flags.bundle.files.Manifest(); m != nil {
		r.Bundle, r.Serial = m.Name, m.Serial
	}
	h := &o.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.pending); n > 0 && history.Digest(h.pending[n-1].Files) == history.Digest(files) {
		return
	}
	if h.pending = append(h.pending, r); len(h.pending) > history.Revisions {
		h.pending = h.pending[1:]
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// recordHistory stores queued revisions until ctx ends.
func (o *runningServer) recordHistory(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.history.wake:
			o.history.mu.Lock()
			needed := o.history.existed || len(o.history.pending) > 1
			o.history.mu.Unlock()
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
		h.mu.Lock()
		h.existed = true
		if len(h.pending) == 0 {
			h.mu.Unlock()
			return store, nil
		}
		r := h.pending[0]
		h.mu.Unlock()
		if err := history.Add(store, r); err != nil {
			return nil, err
		}
		h.mu.Lock()
		if len(h.pending) > 0 && h.pending[0].Time.Equal(r.Time) {
			h.pending = h.pending[1:]
		}
		h.mu.Unlock()
	}
}

// historyRow is the JSON output of history.
type historyRow struct {
	Revisions []history.Entry `json:"revisions"`
}

// filesRow has the files of a revision for the verbs history export and rollback.
type filesRow struct {
	Revision history.Entry     `json:"revision"`
	Files    map[string][]byte `json:"files"`
	// Serving has the files in service; nil if the files on disk were refused since.
	Serving map[string][]byte `json:"serving"`
	Bundle  bool              `json:"bundle"`
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
		return answerOf(historyRow{append([]history.Entry{}, entries...)}, nil, nil, r)
	}
	row := filesRow{Serving: o.server.Inside().Project(), Bundle: o.flags.bundle.follower != nil}
	if r.Revision == control.Previous {
		row.Revision, err = previous(entries, row.Serving)
	} else {
		row.Revision, err = history.Find(entries, r.Revision)
	}
	if err == nil {
		row.Files, err = history.Read(store, row.Revision)
	}
	if err != nil {
		return nil, err
	}
	return answerOf(row, nil, nil, r)
}

// previous returns the newest revision before the one with the serving files.
func previous(entries []history.Entry, serving map[string][]byte) (history.Entry, error) {
	digest, found := history.Digest(serving), serving == nil
	for _, e := range entries {
		if found && e.Digest != digest {
			return e, nil
		}
		found = found || e.Digest == digest
	}
	return history.Entry{}, errors.New("the history has no revision before the one that serves")
}

// historyPatience is the timeout of a request for the history, which may open the state store.
const historyPatience = 30 * time.Second
