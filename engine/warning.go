package engine

import (
	"log/slog"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
)

// maxWarned bounds the warnings that the log has of one load.
const maxWarned = 20

// warning is what makes a warning the same as one before: it may stand on another line.
type warning struct{ file, code, summary string }

// warn logs what a load warns of and the one before did not: who watches the log and not the
// files is to see that a rule has come to hold for nothing.
func (s *Server) warn(problems, before diag.List) {
	told := map[warning]bool{}
	for _, p := range before {
		told[warning{p.Range.File, p.Code, p.Summary}] = true
	}
	count := 0
	for _, p := range problems {
		w := warning{p.Range.File, p.Code, p.Summary}
		if p.Severity != diag.Warning || p.Code == catalog.Quarantined || told[w] {
			continue
		}
		told[w] = true
		if count++; count > maxWarned {
			continue
		}
		attributes := []any{slog.String("at", p.Range.String()), slog.String("warning", p.Summary)}
		if p.Detail != "" {
			attributes = append(attributes, slog.String("advice", p.Detail))
		}
		s.options.Logger.Warn("the files have a warning", attributes...)
	}
	if count > maxWarned {
		s.options.Logger.Warn("the files have more warnings; mcpd status shows them", slog.Int("more", count-maxWarned))
	}
}
