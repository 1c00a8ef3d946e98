package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/bundle"
	"github.com/mcpd/mcpd/internal/ops/replay"
)

// decisionTrial refuses bundles whose policies decide too many audited calls differently.
type decisionTrial struct {
	most   int // such calls; no limit if negative
	logger *slog.Logger

	// counts are of the last replay; nil before the first.
	counts atomic.Pointer[replay.Counts]

	// Set when the first bundle serves, before new ones are examined.
	serving *engine.Server
	log     string // the path of its audit log; "" if it has none
}

// replayedLines is how many of the last lines of the audit log are replayed.
const replayedLines = 2000

// began is called when the first bundle serves. It warns if new bundles will pass without being judged.
func (t *decisionTrial) began(ctx context.Context, e env, s *engine.Server) {
	t.serving, t.log = s, auditLogOf(e, s)
	switch {
	case t.most < 0:
	case t.log == "":
		t.logger.Warn("no audit log for --max-changed-decisions")
	case t.counts.Load() == nil: // the bundle was not examined now
		r := replay.Replay{Evaluate: s.Inside().Explain}
		err := replayLast(t.log, func(c *audit.Call) error {
			_, err := r.Compare(ctx, c)
			return err
		})
		if err != nil {
			t.logger.Warn("replay audit log", slog.String("error", err.Error()))
			return
		}
		t.note(r.Counts)
	}
}

// replayLast calls visit for the last calls of an audit log, which may be missing.
func replayLast(log string, visit func(*audit.Call) error) error {
	if err := audit.LastCalls(log, replayedLines, visit); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// note keeps the counts of a replay, and warns if it could judge no call.
func (t *decisionTrial) note(counts replay.Counts) {
	t.counts.Store(&counts)
	if judged := counts.Same + counts.Different; judged == 0 && counts.Unknown > 0 {
		t.logger.Warn("no audited call judged for --max-changed-decisions", slog.Int("calls", counts.Calls), slog.String("cause", mostFrequent(counts.Reasons)))
	}
}

// mostFrequent returns the name with the highest count, or "".
func mostFrequent(counts map[string]int) string {
	if len(counts) == 0 {
		return ""
	}
	return mostFirst(counts)[0]
}

// changedDecisions is the JSON output of status for --max-changed-decisions.
type changedDecisions struct {
	// Limit is the value of the flag.
	Limit int `json:"limit"`
	// Audited counts the audited calls that were replayed last, and Judged those among them whose decision
	// could be compared.
	Audited int `json:"audited"`
	Judged  int `json:"judged"`
	// Reason says why most of the other calls could not be judged.
	Reason string `json:"reason,omitempty"`
}

// row returns what the last replay could judge, or nil without a limit.
func (t *decisionTrial) row() *changedDecisions {
	if t.most < 0 || t.serving == nil {
		return nil
	}
	row := changedDecisions{Limit: t.most, Reason: "the audit log cannot be read"}
	if counts := t.counts.Load(); counts != nil {
		row.Audited, row.Judged, row.Reason = counts.Calls, counts.Same+counts.Different, mostFrequent(counts.Reasons)
	} else if t.log == "" {
		row.Reason = "there is no audit log"
	}
	return &row
}

func (r *changedDecisions) text() string {
	text := fmt.Sprintf("%d of the last %s judged for --max-changed-decisions %d", r.Judged, count(r.Audited, "audited call"), r.Limit)
	if r.Reason != "" {
		text += "; others not: " + r.Reason
	}
	return text
}

// auditLogOf returns the path of the audit log in the files of a server, or "".
func auditLogOf(e env, s *engine.Server) string {
	block := s.Snapshot().Inside().Definitions().Config.Audit
	if block == nil {
		return ""
	}
	return e.resolve(block.Path) // the files of a bundle have no directory
}

// examine returns an error of [bundle.Refuse] if a bundle exceeds the limit, and another one if it
// cannot be loaded or the audit log cannot be read.
func (t *decisionTrial) examine(ctx context.Context, e env, f *projectFlags, files fs.FS) (err error) {
	if t.most < 0 {
		return nil
	}
	o := engine.Options{Mode: engine.Offline}
	if err := setBundle(&o, files); err != nil {
		return err
	}
	candidate, err := f.open(e, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, candidate.Close(ctx)) }()
	if _, err := candidate.Load(ctx); err != nil {
		return err
	}
	trial := replay.Trial{Candidate: replay.Replay{Evaluate: candidate.Inside().Explain}}
	log := t.log
	if t.serving != nil {
		trial.Serving = &replay.Replay{Evaluate: t.serving.Inside().Explain}
	} else {
		log = auditLogOf(e, candidate)
	}
	if log == "" {
		return nil
	}
	if err := replayLast(log, func(c *audit.Call) error { return trial.Add(ctx, c) }); err != nil {
		return err
	}
	t.note(trial.Candidate.Counts)
	if trial.Changed <= t.most {
		return nil
	}
	return bundle.Refuse(diag.List{{
		Code: "bundle-decisions", Summary: fmt.Sprintf("%s about the last %s would change, more than --max-changed-decisions %d: %s", count(trial.Changed, "decision"), count(trial.Candidate.Counts.Calls, "audited call"), t.most, strings.Join(trial.Examples, "; ")),
		Detail: "see mcpd policy replay", Range: diag.Range{File: "mcpd.hcl"},
	}})
}
