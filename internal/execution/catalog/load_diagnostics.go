package catalog

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/loader"
)

// Guard calls a step of a load. A panic becomes a [diag.List], so that it ends the load but not the
// process. The log has the stack. The panic value appears neither there nor in the diagnostic, as
// it may quote a file. After a panic the builder is reset, as its caches may be inconsistent.
func (b *Builder) Guard(logger *slog.Logger, step func() error) (err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		stack := debug.Stack()
		if worker, ok := cause.(*loader.WorkerPanic); ok {
			stack = worker.Stack
		}
		logger.Error("recover panic in load", slog.String("stack", string(stack)))
		b.Reset()
		err = diag.List{{
			Severity: diag.Error, Code: "file-internal", Summary: "mcpd failed while loading the files, which is a bug in mcpd",
			Detail: "undo the last change to the files, and report the stack trace in the log",
		}}
	}()
	return step()
}

// Examine builds the changed files with the offers of upstream servers, and returns all diagnostics
// and the upstream blocks. The result is not served.
func (b *Builder) Examine(logger *slog.Logger, change Change, registered []*Item, offers func([]definition.Upstream, map[string]string) Offers) (problems diag.List, upstreams []definition.Upstream) {
	err := b.Guard(logger, func() error {
		built := b.Build(change, registered)
		problems = built.Problems
		if !problems.HasErrors() {
			_, warnings := b.Overlay(built.Base, offers(built.Base.Upstreams, built.Base.SecretKeys))
			problems, upstreams = slices.Concat(problems, warnings).Sort(), built.Base.Upstreams
		}
		return nil
	})
	var failed diag.List
	if errors.As(err, &failed) {
		return failed, nil
	}
	return problems, upstreams
}

// LoadOutcome returns the result of a load as a metric label.
func LoadOutcome(published bool, err error) string {
	switch {
	case err != nil:
		return "failed"
	case !published:
		return "unchanged"
	}
	return "published"
}

// LogPanics logs the stack traces of panics in a file.
func LogPanics(logger *slog.Logger, problems diag.List) {
	for _, p := range problems {
		if p.Stack != "" {
			logger.Error("recover panic in file", slog.String("at", p.Range.String()), slog.String("stack", p.Stack))
		}
	}
}

// maxLoggedWarnings bounds the warnings that are logged per load.
const maxLoggedWarnings = 20

// LogNewWarnings logs the warnings that the previous diagnostics, before, do not have, for operators
// who watch the log and not the files.
func LogNewWarnings(logger *slog.Logger, problems, before diag.List) {
	warnings := newWarnings(problems, before)
	for _, p := range warnings[:min(len(warnings), maxLoggedWarnings)] {
		attributes := []any{slog.String("at", p.Range.String()), slog.String("code", p.Code), slog.String("warning", p.Summary)}
		if p.Detail != "" {
			attributes = append(attributes, slog.String("advice", p.Detail))
		}
		logger.Warn("file warning", attributes...)
	}
	if more := len(warnings) - maxLoggedWarnings; more > 0 {
		logger.Warn("more file warnings, see mcpd status", slog.Int("more", more))
	}
}

// newWarnings returns the warnings that the previous diagnostics, before, do not have. A warning is
// the same if only its line has changed. Quarantined tools are left out: federation logs them.
func newWarnings(problems, before diag.List) diag.List {
	type warning struct{ file, code, summary string }
	known := map[warning]bool{}
	for _, p := range before {
		known[warning{p.Range.File, p.Code, p.Summary}] = true
	}
	var warnings diag.List
	for _, p := range problems {
		w := warning{p.Range.File, p.Code, p.Summary}
		if p.Severity == diag.Warning && p.Code != CodeQuarantined && !known[w] {
			known[w] = true
			warnings = append(warnings, p)
		}
	}
	return warnings
}
