package hclfile

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// recovery reads a file with mistakes of syntax piece by piece: each argument,
// and each line on which a block begins or ends, is parsed by itself, so that a
// mistake hides nothing but its own piece. Which lines belong together follows
// from brackets and, where those do not match, from how lines are indented.
type recovery struct {
	f   *File
	src []byte
	// size is the length of all that HCL was given so far.
	size int
	// words are what it may still be given, as [scanSize] counts them, and pieces
	// are how many are still looked for.
	words, pieces int
	problems      diag.List
	// ended says that nothing behind what was read can be understood.
	ended bool
}

// recover reads what it can of a source of which HCL's parser, or the scanner
// before it, has found the given mistakes.
func (f *File) recover(start int, found diag.List) diag.List {
	problems := f.recoverPieces(start, (*reader).readWhole)
	end := -1 // where the reading was given up
	if i := slices.IndexFunc(problems, func(p diag.Diagnostic) bool { return p.Code == "too-many" }); i >= 0 {
		end = problems[i].Range.Start.Byte
	}
	if len(found) > 0 && (!problems.HasErrors() || end >= 0 && found[0].Range.Start.Byte > end) {
		problems = append(problems, found[0])
	}
	return problems
}

// recoverPieces reads a source definition by definition: as a whole where that
// works, and else piece by piece.
func (f *File) recoverPieces(start int, whole func(*reader, int) bool) diag.List {
	f.cuts, f.heredocs, f.left = nil, nil, leftOut{broken: true}
	size := min(len(f.source), maxHCL)
	r := &recovery{f: f, src: []byte(f.source), words: maxRecovered + size/recoveredShare, pieces: maxRecoveredIn + size/pieceShare}
	r.problems = f.settle(r.src)
	root := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	for at := start; at < len(r.src) && !r.ended; {
		outline := &reader{recovery: r, frames: []frame{{rule: fileRules[f.kind], indent: -1}}, dry: true}
		end := outline.read(at)
		again := &reader{recovery: r, frames: []frame{{rule: fileRules[f.kind], indent: -1, body: root}}, end: end, mode: outline.verdict()}
		if r.ended = false; again.mode != balanced || outline.broken || !whole(again, at) {
			again.read(at)
		}
		at = end
	}
	root.SrcRange = r.rng(0, len(r.src))
	f.body = root
	return r.problems
}

// readWhole parses the part that begins at an offset at once. It reports false
// when there is a mistake of syntax in it.
func (r *reader) readWhole(from int) bool {
	to := r.end
	s := scanner{src: r.src[:to], at: from, levels: make([]level, 1, 16)}
	heredocs, problem := s.run()
	if problem != nil || !r.spend(s.size.file, from) {
		return false
	}
	body, found := r.parse(from, to, heredocs, "\n")
	if firstFatal(found) >= 0 {
		return false
	}
	r.f.body = body
	r.problems = append(r.problems, r.f.syntaxProblems(found)...)
	r.merge(body)
	return true
}

// spend counts words that HCL is given. It ends the reading when those were all.
func (r *reader) spend(words, at int) bool {
	if r.words -= words; r.words < 0 && !r.ended {
		if !r.dry {
			r.problems = append(r.problems, notShown(r.f.span(at, at+1)))
		}
		r.giveUp(at)
	}
	return r.words >= 0
}

// notShown says that a file has more mistakes than are looked for.
func notShown(where diag.Range) diag.Diagnostic {
	return diag.Diagnostic{Code: "too-many", Range: where, Summary: "mistakes behind this place are not shown", Detail: "mend the ones above first"}
}

// giveUp ends the reading: nothing from an offset on can be understood.
func (r *reader) giveUp(at int) {
	if r.ended = true; !r.dry {
		r.f.left.leaveOut(r.f.source, at, len(r.src))
	}
}

// parse has HCL read a part of the source without the text of its heredocs,
// and tail behind it.
func (r *recovery) parse(from, to int, heredocs []heredoc, tail string) (*hclsyntax.Body, hcl.Diagnostics) {
	start := r.size
	r.place(from)
	text := make([]byte, 0, to-from+len(tail))
	at := from
	for _, h := range heredocs {
		h.cut = start + len(text) + h.open - at
		text = append(text, r.src[at:h.start]...)
		r.size = start + len(text)
		r.place(h.end)
		r.f.heredocs = append(r.f.heredocs, h)
		at = h.end
	}
	text = append(append(text, r.src[at:to]...), tail...)
	r.size = start + len(text)
	parsed, found := hclsyntax.ParseConfig(text, "", hcl.Pos{Byte: start, Line: 1, Column: 1})
	return parsed.Body.(*hclsyntax.Body), found
}

// place says that what HCL is given next stands at an offset of the source.
func (r *recovery) place(offset int) {
	r.f.cuts = append(r.f.cuts, cut{at: r.size, skipped: offset - r.size})
}

// rng returns the range of HCL's for one in the source.
func (r *recovery) rng(from, to int) hcl.Range {
	r.place(from)
	start := r.size
	r.size += to - from + 1
	return hcl.Range{Start: hcl.Pos{Byte: start}, End: hcl.Pos{Byte: start + to - from}}
}

// fail notes a mistake of syntax that HCL's parser was not asked for.
func (r *recovery) fail(p scanProblem) {
	r.problems = append(r.problems, diag.Diagnostic{Code: p.code, Range: r.f.span(p.start, p.end), Summary: p.summary, Detail: p.detail})
}

// failParsed notes the first mistake that HCL found in a piece, and the escapes
// before it: what it finds behind that is a consequence.
func (r *recovery) failParsed(found hcl.Diagnostics) {
	var told hcl.Diagnostics
	for _, p := range found {
		if !isFatal(p) {
			continue
		}
		if told = append(told, p); p.Summary != badEscape {
			break
		}
	}
	r.problems = append(r.problems, r.f.syntaxProblems(told)...)
}

// isFatal reports a mistake that leaves the syntax tree incomplete.
func isFatal(p *hcl.Diagnostic) bool {
	return p.Severity == hcl.DiagError && p.Summary != "Attribute redefined" && p.Subject != nil
}

// firstFatal returns the offset of the first mistake that leaves the syntax
// tree incomplete, or -1.
func firstFatal(found hcl.Diagnostics) int {
	first := -1
	for _, p := range found {
		if isFatal(p) && (first < 0 || p.Subject.Start.Byte < first) {
			first = p.Subject.Start.Byte
		}
	}
	return first
}

// merge adds what was parsed to the innermost block.
func (r *reader) merge(parsed *hclsyntax.Body) {
	into := r.top().body
	for name, attr := range parsed.Attributes {
		first, again := into.Attributes[name]
		if !again || isUnread(first.Expr) {
			into.Attributes[name] = attr
			continue
		}
		r.problems = append(r.problems, diag.Diagnostic{
			Code: "duplicate", Range: r.f.rng(attr.NameRange), Summary: fmt.Sprintf("the argument %q is set twice", name), Detail: "keep one of the two",
			Notes: []diag.Note{{Range: r.f.rng(first.NameRange), Message: "it is first set here"}},
		})
	}
	into.Blocks = append(into.Blocks, parsed.Blocks...)
}
