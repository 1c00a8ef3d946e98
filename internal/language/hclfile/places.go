package hclfile

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/mcpd/mcpd/diag"
)

// markEvery is the distance in bytes between the known places of a file, so
// that the place of any byte is found without reading a long line from its start.
const markEvery = 256

// places finds lines and columns of byte offsets.
type places []diag.Pos

func newPlaces(source string) places {
	p := make(places, 1, 1+len(source)/markEvery)
	p[0] = diag.Pos{Line: 1, Column: 1}
	if strings.HasPrefix(source, byteOrderMark) {
		p[0].Column = 0 // the mark takes no column
	}
	for at := 0; len(source)-at > markEvery; {
		next := at + markEvery
		for !utf8.RuneStart(source[next]) {
			next--
		}
		p = append(p, diag.Advance(p[len(p)-1], source[at:next]))
		at = next
	}
	return p
}

// pos returns the place of the byte at offset, which is moved into the source
// when it lies outside.
func (p places) pos(source string, offset int) diag.Pos {
	offset = max(0, min(offset, len(source)))
	i := sort.Search(len(p), func(i int) bool { return p[i].Byte > offset }) - 1
	pos := diag.Advance(p[i], source[p[i].Byte:offset])
	pos.Column = max(1, pos.Column)
	return pos
}

// cut is a run of bytes that HCL did not parse.
type cut struct {
	// at is the offset of the cut in what HCL parsed.
	at int
	// skipped is how many bytes were cut here and before.
	skipped int
}

// addCut notes that size bytes are missing at an offset of what HCL parses.
func (f *File) addCut(at, size int) {
	if n := len(f.cuts); n > 0 {
		size += f.cuts[n-1].skipped
	}
	f.cuts = append(f.cuts, cut{at, size})
}

// offset translates an offset in what HCL parsed to one in the source.
func (f *File) offset(parsed int) int {
	i := sort.Search(len(f.cuts), func(i int) bool { return f.cuts[i].at > parsed })
	if i > 0 {
		parsed += f.cuts[i-1].skipped
	}
	return min(parsed, len(f.source))
}

func (f *File) pos(offset int) diag.Pos { return f.places.pos(f.source, offset) }

// span returns the range of the bytes of the source from start up to end.
func (f *File) span(start, end int) diag.Range {
	return diag.Range{File: f.path, Start: f.pos(start), End: f.pos(max(start, end))}
}

// rng translates a range of HCL's.
func (f *File) rng(r hcl.Range) diag.Range {
	if r.Filename != "" {
		if i, err := strconv.Atoi(r.Filename); err == nil && i < len(f.embedded) {
			return f.embedded[i].Range(r.Start.Byte, r.End.Byte)
		}
	}
	return f.span(f.offset(r.Start.Byte), f.offset(r.End.Byte))
}
