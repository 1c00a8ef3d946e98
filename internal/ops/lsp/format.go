package lsp

import (
	"context"
	"strings"

	"github.com/creachadair/jrpc2"

	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// formatting returns the edits that put a document in the format of mcpd fmt. A document with a
// syntax error has none: the diagnostics show the error.
func (s *session) formatting(_ context.Context, r *jrpc2.Request) (any, error) {
	var params documentParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	d, unit, err := s.open(params.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	if !isHCL(d.path) {
		return []textEdit{}, nil
	}
	formatted, problems := hclfile.Format(hclfile.Source{Path: d.path, Bytes: []byte(d.text)})
	if problems.HasErrors() || string(formatted) == d.text {
		return []textEdit{}, nil
	}
	return []textEdit{unit.replacement(d.text, string(formatted))}, nil
}

// isHCL reports whether mcpd formats a file.
func isHCL(path string) bool {
	return strings.HasSuffix(path, ".hcl") || strings.HasSuffix(path, ".mcpdvars")
}

// replacement returns an edit of whole lines that changes one text to another. It leaves out equal
// lines at the start and the end, so that an editor keeps the cursor.
func (e encoding) replacement(from, to string) textEdit {
	start := 0
	for start < len(from) && start < len(to) {
		i := strings.IndexByte(from[start:], '\n') + 1
		if i == 0 || !strings.HasPrefix(to[start:], from[start:start+i]) {
			break
		}
		start += i
	}
	tail := 0
	for {
		rest := from[start : len(from)-tail]
		i := strings.LastIndexByte(strings.TrimSuffix(rest, "\n"), '\n') + 1
		line := rest[i:]
		if line == "" || !strings.HasSuffix(to[start:len(to)-tail], line) {
			break
		}
		if before := to[start : len(to)-tail-len(line)]; before != "" && !strings.HasSuffix(before, "\n") {
			break
		}
		tail += len(line)
	}
	return textEdit{e.span(from, start, len(from)-tail), to[start : len(to)-tail]}
}
