package hclfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// mode says how a part of a file finds the ends of its blocks.
type mode int

const (
	// balanced: each brace has its like.
	balanced mode = iota
	// unclosed: some lack theirs, and a line that is indented no more than the
	// heading of a block shows that the block has ended.
	unclosed
	// stray: there are braces too many, and those that are indented more than
	// the heading of the block are not its end.
	stray
)

// frame is a block that is open.
type frame struct {
	rule *rule
	body *hclsyntax.Body
	// block is nil for the file itself.
	block *hclsyntax.Block
	// indent is that of the heading, brace the place of its "{".
	indent, brace int
	// filled: the block holds a line; trusted: its first is indented more than
	// the heading.
	filled, trusted bool
}

// reader reads one part of a file: from a definition up to the next one.
type reader struct {
	*recovery
	mode   mode
	frames []frame
	// end is where the part ends, 0 where that is to be found out.
	end int
	// dry: nothing is parsed and nothing told, only the end is looked for.
	dry, broken bool
	// strays counts the braces that end nothing.
	strays int
	// begun is how far the first definition is indented, plus 1.
	begun int
}

func (r *reader) top() *frame { return &r.frames[len(r.frames)-1] }

// outer is how far a heading is indented at most that begins a definition.
func (r *reader) outer() int {
	if len(r.frames) > 1 {
		return r.frames[1].indent
	}
	return max(r.begun-1, 0)
}

// verdict says how the part is to be read, once its end was looked for.
func (r *reader) verdict() mode {
	switch {
	case len(r.frames) > 1:
		return unclosed
	case r.strays > 0:
		return stray
	}
	return balanced
}

// read reads the part that begins at an offset, and returns where it ends.
func (r *reader) read(at int) int {
	for !r.ended {
		next, indent, open := r.skip(at)
		switch {
		case open:
			r.broken = true
			if r.giveUp(next); !r.dry {
				r.fail(scanProblem{"syntax", next, next + 1, "the comment is never closed", "close it with */"})
			}
		case next >= len(r.src) || r.end > 0 && next >= r.end:
			next = min(next, len(r.src))
			r.closeAll(next)
			return next
		case r.src[next] == '}':
			at = r.closing(next, r.closingIndent(next, indent))
			continue
		case r.end == 0 && r.begun > 0 && indent <= r.outer() && r.definition(next):
			return r.lineStart(next)
		case len(r.problems) > maxDiagnostics || r.pieces < 0 && !r.dry:
			r.problems = append(r.problems, notShown(r.f.span(next, next+1)))
			r.giveUp(next)
		case r.dry:
			if r.pieces--; r.pieces < 0 {
				return r.lineStart(next)
			}
		}
		if r.ended {
			break
		}
		r.dedent(next, indent)
		at = r.item(next, indent)
	}
	r.vagueAll()
	return len(r.src)
}

// skip passes over blanks and comments. It returns where the next text begins,
// how far it is indented, and whether that is a comment that never ends.
func (r *reader) skip(at int) (next, indent int, open bool) {
	for at < len(r.src) {
		switch rest := r.src[at:]; {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			at++
		case endsLine(rest):
			at += lineLength(rest)
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return at, 0, true
			}
			at += n + 4
		default:
			return at, at - r.lineStart(at), false
		}
	}
	return at, 0, false
}

// lineStart returns where the line of an offset begins.
func (r *reader) lineStart(at int) int {
	start := bytes.LastIndexByte(r.src[:at], '\n') + 1
	if start == 0 && bytes.HasPrefix(r.src, []byte(byteOrderMark)) {
		start = len(byteOrderMark)
	}
	return start
}

// definition reports whether a block that stands at the top of the file begins
// at an offset.
func (r *reader) definition(at int) bool {
	h := readHeading(r.src, at)
	top := fileRules[r.f.kind]
	return h.from == at && top.hasBlock(h.name) && len(h.labels) == len(top.block(h.name).labels) &&
		bytes.HasPrefix(bytes.TrimLeft(r.src[h.end:], " \t"), []byte("{"))
}

// item reads one piece, and returns where the next one may begin.
func (r *reader) item(at, indent int) int {
	top := r.top()
	if !top.filled {
		top.filled, top.trusted = true, indent > top.indent
	}
	if len(r.frames) == 1 && r.begun == 0 && r.definition(at) {
		r.begun = indent + 1
	}
	p := r.piece(at, indent)
	r.broken = r.broken || p.problem != nil
	switch {
	case r.dry && p.opens:
		r.frames = append(r.frames, frame{rule: r.childRule(p.head.name), indent: p.indent})
	case r.dry:
	case p.opens:
		r.open(p)
	case r.leaf(p) && p.to < len(r.src) && r.src[p.to] == '}':
		r.fail(scanProblem{"syntax", p.to, p.to + 1, `the "}" of a block stands on a line of its own`, "begin a new line"})
	}
	if len(r.frames) > maxNesting {
		if r.giveUp(at); !r.dry {
			r.fail(scanProblem{"too-deep", at, at + 1, fmt.Sprintf("more than %d blocks are open here", maxNesting), "end some of them before this one begins"})
		}
	}
	return p.to
}

// childRule returns the rule of a block in the innermost one.
func (r *reader) childRule(name string) *rule {
	if inner := r.top().rule.block(name); inner != nil {
		return inner
	}
	return &rule{}
}

// closing reads a "}" at the beginning of a line.
func (r *reader) closing(at, indent int) int {
	for r.mode == unclosed && len(r.frames) > 1 && r.top().trusted && indent < r.top().indent {
		r.shut(at)
	}
	if top := r.top(); len(r.frames) == 1 || r.mode == stray && top.trusted && indent > top.indent {
		if r.strays++; !r.dry {
			r.fail(scanProblem{"syntax", at, at + 1, `no block is open for this "}"`, "remove it, or the one above that ends a block too early"})
		}
		return at + lineLength(r.src[at:])
	}
	r.close(at, at+1)
	rest := bytes.TrimLeft(r.src[at+1:], " \t")
	next := len(r.src) - len(rest)
	if endsLine(rest) || bytes.HasPrefix(rest, []byte("/*")) {
		return next
	}
	if r.broken = true; !r.dry {
		r.f.left.leaveOut(r.f.source, next, next+len(bytes.TrimRight(rest[:lineLength(rest)], "\r\n")))
		r.fail(scanProblem{"syntax", next, next + 1, `something follows the "}" of a block on its line`, "begin a new line"})
	}
	if rest[0] == '}' || isWord(rest[0]) {
		return next
	}
	return next + lineLength(rest)
}

// closingIndent returns how far the end of a block is indented. One behind
// something else on its line counts as it is needed.
func (r *reader) closingIndent(at, indent int) int {
	if len(bytes.TrimSpace(r.src[r.lineStart(at):at])) == 0 {
		return indent
	}
	if r.mode == stray {
		return r.top().indent + 1
	}
	return r.top().indent
}

// close ends the innermost block.
func (r *reader) close(from, to int) {
	if b := r.top().block; b != nil {
		b.CloseBraceRange = r.rng(from, to)
	}
	r.frames = r.frames[:len(r.frames)-1]
}

// shut ends the innermost block, which has no end of its own, at an offset.
func (r *reader) shut(at int) {
	top := r.top()
	if !r.dry {
		r.fail(scanProblem{"syntax", top.brace, top.brace + 1, "this block is never closed", `add the "}" that ends it, or the one that a block within it lacks`})
	}
	r.close(at, at)
}

// dedent ends the blocks that a line cannot stand in by how it is indented.
func (r *reader) dedent(at, indent int) {
	for r.mode == unclosed && len(r.frames) > 1 {
		if top := r.top(); indent >= top.indent && (!top.trusted || indent > top.indent) {
			return
		}
		r.shut(at)
	}
}

// closeAll ends the part at an offset.
func (r *reader) closeAll(at int) {
	for !r.dry && len(r.frames) > 1 {
		r.shut(at)
	}
}

// vagueAll notes that nobody knows what else the open blocks hold.
func (r *reader) vagueAll() {
	for i := len(r.frames) - 1; i >= 0 && !r.dry; i-- {
		r.f.left.beVague(r.frames[i].body)
		if b := r.frames[i].block; b != nil {
			b.CloseBraceRange = r.rng(len(r.src), len(r.src))
		}
	}
}
