package hclfile

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// Codeact is the codeact block: agents may write code that calls tools.
type Codeact struct {
	// Tools are names and patterns of the tools that code may call; nil is all.
	Tools []Name
	// MaxCalls is how many calls one run makes, and MaxParallel how many of them at once.
	MaxCalls, MaxParallel int
	// MaxStdout is how much a run prints, in bytes.
	MaxStdout int
	// Search says that agents are offered tools that search the others, describe one and
	// call one by its name.
	Search bool
	// Bounds are those of a run.
	Bounds
	AskTimeout time.Duration
	Labels     map[string]string

	Range diag.Range
	Hashes
}

// What a run of code has where the block does not say, and at most.
const (
	DefaultCodeTimeout  = 30 * time.Second
	DefaultCodeCalls    = 50
	MaxCodeCalls        = 256
	DefaultCodeParallel = 8
	MaxCodeParallel     = 8
	DefaultCodeStdout   = 64 << 10
	MaxCodeStdout       = 1 << 20
)

// codeact decodes the codeact block, nil where there is none.
func (d *decoder) codeact(b *hclsyntax.Block) *Codeact {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	d.begin(b)
	c := &Codeact{
		MaxCalls: DefaultCodeCalls, MaxParallel: DefaultCodeParallel, MaxStdout: DefaultCodeStdout,
		Range: d.f.rng(b.DefRange()), Bounds: d.boundsOf(b), Labels: d.textMap(b.Body, "labels"),
	}
	c.Tools = d.toolPatterns(b.Body, "tools", patternCharacters)
	if n, ok := d.whole(b.Body, "max_calls", 1, MaxCodeCalls); ok {
		c.MaxCalls = n
	}
	if n, ok := d.whole(b.Body, "max_parallel", 1, MaxCodeParallel); ok {
		c.MaxParallel = n
	}
	if n := d.size(b.Body, "max_stdout", MaxCodeStdout); n > 0 {
		c.MaxStdout = int(n)
	}
	c.Search, _ = d.boolean(b.Body, "search", true)
	if _, written := c.Ranges["timeout"]; !written {
		c.Timeout = DefaultCodeTimeout
	}
	c.AskTimeout = d.durationWithin(b.Body, "ask_timeout", DefaultAskTimeout, maxAskTimeout)
	c.Hashes = d.hashes()
	return c
}

// dryRun decodes what a tool does in a rehearsal.
func (d *decoder) dryRun(b *hclsyntax.Block, t *Tool) {
	attr := b.Body.Attributes["dry_run"]
	if attr == nil {
		return
	}
	t.DryRun = d.code(attr, JavaScript, TypeScript)
	if t.ReadOnly != nil && *t.ReadOnly {
		d.fail("contradiction", d.f.rng(attr.NameRange), fmt.Sprintf("%q is what a tool does in a rehearsal that writes, and this one is read-only", "dry_run"),
			"remove it: a rehearsal runs what is read-only as it is")
	}
}
