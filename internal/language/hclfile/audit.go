package hclfile

import (
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// The values of [Audit.Mode].
const (
	AuditRelaxed = "relaxed"
	AuditStrict  = "strict"
)

// What an audit block may say at most.
const (
	maxAuditFile  = 16 << 30
	maxAuditFiles = 10_000
	maxAuditAge   = 10 * 365 * 24 * time.Hour
)

// Audit is the audit block: calls are written down in a file.
type Audit struct {
	// Path is the file as it is written, relative to the folder of the operator's file.
	Path      string
	PathRange diag.Range
	// Mode is [AuditRelaxed] or [AuditStrict].
	Mode string
	// MaxSize is the size in bytes from which on a file is put aside, Keep how
	// many of those are kept and MaxAge for how long; 0 means the default, which
	// for MaxAge is for ever.
	MaxSize int64
	Keep    int
	MaxAge  time.Duration
	// Capture are names and patterns of the tools, resources and prompts whose
	// arguments are kept with their values.
	Capture []Name
	Range   diag.Range
}

// audit decodes the audit block, nil when there is none.
func (d *decoder) audit(b *hclsyntax.Block) *Audit {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	a := &Audit{Mode: AuditRelaxed, Range: d.f.rng(b.DefRange())}
	d.auditPath(b.Body, a)
	if mode, ok := d.oneOf(b.Body, "mode", AuditRelaxed, AuditStrict); ok {
		a.Mode = mode
	}
	a.MaxSize = d.size(b.Body, "max_size", maxAuditFile)
	a.Keep, _ = d.whole(b.Body, "keep", 1, maxAuditFiles)
	a.MaxAge = d.durationWithin(b.Body, "max_age", 0, maxAuditAge)
	a.Capture = d.patterns(b.Body, "capture", patternTexts{wrong: "this is not a name", characters: patternCharacters,
		empty: "the list of names is empty", detail: "name what has its values kept, or remove \"capture\": no values are kept then"})
	return a
}

// auditPath reads the path of the file.
func (d *decoder) auditPath(body *hclsyntax.Body, a *Audit) {
	path, ok := d.text(body, "path")
	if !ok {
		return
	}
	a.Path, a.PathRange = path, d.f.rng(body.Attributes["path"].Expr.Range())
	if path == "" || strings.HasSuffix(path, "/") || strings.ContainsRune(path, 0) || strings.Trim(path, "./") == "" {
		d.fail("bad-value", a.PathRange, "this is not the path of a file", "write where the records go, such as \"audit/mcpd.jsonl\"")
	}
}
