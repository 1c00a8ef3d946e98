package overlay

import (
	"log/slog"
	"strconv"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// maxQuarantined bounds how many tools that come into quarantine at once are told one by
// one: a server may list thousands of new names each time that it is asked.
const maxQuarantined = 20

// tellQuarantined tells which tools are in quarantine that were not: of each upstream the
// first, and how many more there are.
func (p *pins) tellQuarantined(offers []*offer) {
	now := map[lockfile.Change]bool{}
	for _, o := range offers {
		told := 0
		for _, c := range o.quarantined {
			if now[c] = true; p.quarantined[c] {
				continue
			}
			if told++; told <= maxQuarantined {
				p.Logger.Warn("a tool of an upstream is in quarantine until it is accepted; mcpd lock diff shows the change", attributesOf(c)...)
				p.Audit("upstream.quarantined", textsOf(c))
			}
		}
		if more := told - maxQuarantined; more > 0 {
			p.Logger.Warn("more tools of an upstream are in quarantine until they are accepted; mcpd lock diff shows them", slog.String("upstream", o.upstream), slog.Int("tools", more))
			p.Audit("upstream.quarantined", map[string]string{"upstream": o.upstream, "tools": strconv.Itoa(more)})
		}
	}
	p.quarantined = now
}
