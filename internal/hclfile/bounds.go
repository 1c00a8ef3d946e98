package hclfile

import (
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// What bounds may be.
const (
	// MaxMemory and MaxOutput are in bytes.
	MaxMemory = 4 << 30
	MaxOutput = 16 << 20
	minMemory = 32 << 20
	// DefaultMemory and DefaultOutput hold where nothing is said.
	DefaultMemory = 256 << 20
	DefaultOutput = 4 << 20
)

// Bounds are those of a call. A zero member is not said.
type Bounds struct {
	Timeout time.Duration
	// Memory is what the process of a call may have, in bytes.
	Memory int64
	// Output is how much JSON a result may be, in bytes.
	Output int64
	// Concurrency is how many calls may run at once.
	Concurrency int
	// Ranges are those of the arguments that are written, by their names.
	Ranges map[string]diag.Range
}

func (b *Bounds) locate(name string, where diag.Range) {
	if b.Ranges == nil {
		b.Ranges = map[string]diag.Range{}
	}
	b.Ranges[name] = where
}

// bounds decodes what a block says of calls.
func (d *decoder) bounds(body *hclsyntax.Body) Bounds {
	b := Bounds{
		Timeout: d.duration(body, "timeout", 0),
		Memory:  d.size(body, "memory", MaxMemory),
		Output:  d.size(body, "output", MaxOutput),
	}
	b.Concurrency, _ = d.whole(body, "concurrency", 1, maxConcurrency)
	for _, name := range boundNames {
		if attr := body.Attributes[name]; attr != nil {
			b.locate(name, d.f.rng(attr.Expr.Range()))
		}
	}
	if where := b.Ranges["memory"]; b.Memory > 0 && b.Memory < minMemory {
		d.fail("bad-value", where, "no process of a body can do with so little memory", "write at least \"32MiB\"")
		b.Memory = 0
	}
	return b
}

// boundsOf decodes the limits block of what is called. Its timeout may stand
// there, or as an argument of its own.
func (d *decoder) boundsOf(b *hclsyntax.Block) Bounds {
	var found Bounds
	if limits := first(b.Body, "limits"); limits != nil {
		d.check(limits.Body, boundsOfCall["limits"], "a limits block", limits.DefRange())
		found = d.bounds(limits.Body)
	}
	attr := b.Body.Attributes["timeout"]
	switch {
	case attr != nil && found.Timeout > 0:
		d.fail("contradiction", d.f.rng(attr.NameRange), "the timeout is given twice", "remove one of the two",
			diag.Note{Range: found.Ranges["timeout"], Message: "it is given here, too"})
	case attr != nil:
		found.Timeout = d.duration(b.Body, "timeout", DefaultTimeout)
		found.locate("timeout", d.f.rng(attr.Expr.Range()))
	case found.Timeout == 0:
		found.Timeout = DefaultTimeout
	}
	return found
}

// boundsAway decodes the bounds of what another server does, whose memory is its own.
func (d *decoder) boundsAway(b *hclsyntax.Block) Bounds {
	found := d.boundsOf(b)
	if where, written := found.Ranges["memory"]; written {
		d.fail("bad-value", where, "the memory of another server is not bounded by a call", "remove it; where mcpd compose runs the server, write memory in the container block")
	}
	return found
}
