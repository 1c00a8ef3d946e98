package hclfile

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// Hash is a hash of a definition.
type Hash [32]byte

// Hashes tell definitions apart.
type Hashes struct {
	// Hash identifies everything that defines a tool, policy or hook, or another
	// thing of its kind: its evaluated values, the files that it names, the text
	// of its bodies and where they stand.
	Hash Hash
	// Meaning is the same but for where things stand: an edit elsewhere in the
	// file leaves it as it was.
	Meaning Hash
}

// hasher makes the hashes of one definition.
type hasher struct{ placed, meant hash.Hash }

// Write adds bytes to both hashes. It never fails.
func (h *hasher) Write(b []byte) (int, error) {
	h.meant.Write(b)
	return h.placed.Write(b)
}

// definition checks the name and the block of a definition, which what calls it, and
// begins its hashes. It returns the places of the block and of its name.
func (d *decoder) definition(b *hclsyntax.Block, what string) (at, name diag.Range) {
	d.checkName(what, b.Labels[0], b.LabelRanges[0])
	d.checkBody(b)
	d.begin(b)
	return d.f.rng(blockRange(b)), d.f.rng(b.LabelRanges[0])
}

// begin begins the hashes of a definition: where it stands and its source
// text. What its expressions read until [decoder.hashes] is added.
func (d *decoder) begin(b *hclsyntax.Block) {
	where := blockRange(b)
	if isJSON(d.f.path) {
		where.Start = b.OpenBraceRange.Start // the blocks of one type share its name
	}
	r := d.f.rng(where)
	h := &hasher{placed: sha256.New(), meant: sha256.New()}
	writeField(h.placed, d.f.path)
	var at [24]byte
	binary.BigEndian.PutUint64(at[:8], uint64(r.Start.Byte))
	binary.BigEndian.PutUint64(at[8:16], uint64(r.Start.Line))
	binary.BigEndian.PutUint64(at[16:], uint64(r.Start.Column))
	h.placed.Write(at[:])
	for _, field := range append([]string{b.Type}, b.Labels...) {
		writeField(h, field)
	}
	writeField(h, d.f.source[r.Start.Byte:r.End.Byte])
	d.eval.reads = h
}

// hashes ends the hashes of a definition and returns them.
func (d *decoder) hashes() Hashes {
	h := d.eval.reads
	d.eval.reads = nil
	return Hashes{Hash: Hash(h.placed.Sum(nil)), Meaning: Hash(h.meant.Sum(nil))}
}

// writeField adds s to a hash so that no two sequences of fields collide.
func writeField(h io.Writer, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	_, _ = h.Write(n[:]) // hashes never fail
	_, _ = io.WriteString(h, s)
}

// blockRange returns the range of a whole block.
func blockRange(b *hclsyntax.Block) hcl.Range {
	return hcl.RangeBetween(b.TypeRange, b.CloseBraceRange)
}
