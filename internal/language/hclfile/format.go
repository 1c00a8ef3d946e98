package hclfile

import (
	"bytes"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/mcpd/mcpd/diag"
)

// Format returns a file in canonical form: indents, spaces, aligned equals signs, and a final
// line end. The text of literal heredocs is unchanged. A file with a syntax error is not
// formatted. JSON is returned unchanged.
func Format(src Source) (_ []byte, problems diag.List) {
	f := &File{path: src.Path}
	defer f.reportPanic(&problems)
	if isJSON(src.Path) {
		return src.Bytes, nil
	}
	if problem := checkBytes(src); problem != nil {
		return nil, diag.List{*problem}
	}
	f.source, f.positions = string(src.Bytes), newPositions(string(src.Bytes))
	if problems := f.parseHCL(src.Bytes); f.body == nil || f.broken {
		return nil, f.finish(problems)
	}
	out := hclwrite.Format(f.withoutTexts())
	again, problem := scan(out)
	if problem != nil || len(again) != len(f.heredocs) {
		return nil, diag.List{{Code: "syntax", Summary: "the file cannot be formatted", Range: diag.Range{File: f.path}}}
	}
	return f.withTexts(out, again), nil
}

// withoutTexts returns the source without the texts of its heredocs, with a final line end.
func (f *File) withoutTexts() []byte {
	out := make([]byte, 0, len(f.source))
	at := 0
	if bytes.HasPrefix([]byte(f.source), []byte(byteOrderMark)) {
		at = len(byteOrderMark)
	}
	for _, h := range f.heredocs {
		out = append(out, f.source[at:h.start]...)
		at = h.end
	}
	out = append(out, f.source[at:]...)
	if n := len(out); n > 0 && out[n-1] != '\n' {
		out = append(out, '\n')
	}
	return out
}

// withTexts inserts the texts of the heredocs where they were removed.
func (f *File) withTexts(out []byte, cuts []heredoc) []byte {
	result := make([]byte, 0, len(out)+len(f.source))
	at := 0
	for i, h := range cuts {
		result = append(result, out[at:h.start]...)
		result = append(result, f.source[f.heredocs[i].start:f.heredocs[i].end]...)
		at = h.start
	}
	return append(result, out[at:]...)
}
