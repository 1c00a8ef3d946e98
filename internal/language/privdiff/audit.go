package privdiff

import (
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// audit returns what is written down of calls. Nobody is seen where that goes, so
// an audit that goes, or is strict no longer, adds power; the rest is to be read.
func (s *Side) audit() account {
	said := s.Config.Audit
	if said == nil {
		return s.block("audit", noRange)
	}
	a := s.block("audit", said.Range)
	a.say(grant.Holds, "records of calls", "")
	a.when(said.Mode == hclfile.AuditStrict, grant.Holds, "mode strict")
	a.encoded(grant.Judged, "path", said.Path)
	a.encoded(grant.Judged, "retention", []any{said.MaxSize, said.Keep, said.MaxAge})
	for _, n := range said.Capture {
		a.add(grant.Fact{Option: "capture", Sense: grant.Gives, Value: n.Text, Pattern: true}, n.Range)
	}
	return a
}
