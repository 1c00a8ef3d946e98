package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/bundle"
	"github.com/mcpd/mcpd/internal/ops/replay"
)

// decisionTrial refuses bundles whose policies decide too many audited calls differently.
type decisionTrial struct {
	most int // such calls; no limit if negative

	// Set when the first bundle serves, before new ones are examined.
	serving *engine.Server
	log     string // the path of its audit log; "" if it has none
}

// replayedLines is how many of the last lines of the audit log are replayed.
const replayedLines = 2000

// began is called when the first bundle serves.
func (t *decisionTrial) began(e env, s *engine.Server) {
	t.serving, t.log = s, auditLogOf(e, s)
	if t.most >= 0 && t.log == "" {
		s.Logger().Warn("no audit log for --max-changed-decisions")
	}
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
	err = audit.LastCalls(log, replayedLines, func(c *audit.Call) error { return trial.Add(ctx, c) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if trial.Changed <= t.most {
		return nil
	}
	return bundle.Refuse(diag.List{{
		Code: "bundle-decisions", Summary: fmt.Sprintf("%s about the last %s would change, more than --max-changed-decisions %d: %s", count(trial.Changed, "decision"), count(trial.Candidate.Counts.Calls, "audited call"), t.most, strings.Join(trial.First, "; ")),
		Detail: "see mcpd policy replay", Range: diag.Range{File: "mcpd.hcl"},
	}})
}
