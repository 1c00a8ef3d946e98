package schema

import (
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// Codes of the diagnostics of this package.
const (
	codeBad     = "bad-schema"
	codeUnsafe  = "unsafe-schema"
	codeRemote  = "remote-schema"
	codePattern = "bad-pattern"
	codeFormat  = "unknown-format"
	codeKeyword = "unknown-keyword"
	codeDefault = "bad-default"
)

// mostProblems bounds how many diagnostics one schema is worth, and
// mostWarnings how many of them may be warnings.
const (
	mostProblems = 50
	mostWarnings = 20
)

// problems collects what is wrong with a schema.
type problems struct {
	whole  diag.Range
	origin Origin
	list   diag.List
	// warnings counts them, so that they leave room for errors.
	warnings int
}

// fail reports a mistake at a JSON pointer.
func (p *problems) fail(pointer, code, summary, detail string) {
	p.add(diag.Error, pointer, code, summary, detail)
}

// warn reports what may be a mistake.
func (p *problems) warn(pointer, code, summary, detail string) {
	if p.warnings++; p.warnings <= mostWarnings {
		p.add(diag.Warning, pointer, code, summary, detail)
	}
}

func (p *problems) add(severity diag.Severity, pointer, code, summary, detail string) {
	if len(p.list) >= mostProblems {
		return
	}
	where, exact := p.place(pointer)
	if !exact && pointer != "" {
		summary += fmt.Sprintf(" (at %s of the schema)", clip(pointer, longestSegment))
	}
	p.list = append(p.list, diag.Diagnostic{Severity: severity, Code: code, Summary: summary, Detail: detail, Range: where})
}

// place returns where the part at pointer was written, or else what it stands
// in. It reports whether it is the place of the part itself.
func (p *problems) place(pointer string) (where diag.Range, exact bool) {
	for at := pointer; ; {
		if where, ok := p.origin[at]; ok {
			return where, at == pointer
		}
		slash := strings.LastIndexByte(at, '/')
		if slash < 0 {
			return p.whole, false
		}
		at = at[:slash]
	}
}
