package lsp

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/creachadair/jrpc2"

	"github.com/mcpd/mcpd/diag"
)

// fix replaces a misspelled name of a diagnostic.
type fix struct {
	diagnostic diagnostic
	title      string
	edit       textEdit
}

// fixes are the fixes of one text of a file.
type fixes struct {
	text string
	all  []fix
}

// fixOf returns the fix of a diagnostic that suggests a name.
func (e encoding) fixOf(text string, d diag.Diagnostic, shown diagnostic) (fix, bool) {
	meant := d.Suggestion()
	if meant == "" || d.Range.Start.Line == 0 {
		return fix{}, false
	}
	start, end := e.offset(text, shown.Range.Start), e.offset(text, shown.Range.End)
	if end-start > maxFixed {
		return fix{}, false
	}
	words := names.FindAllStringIndex(text[start:end], -1)
	written := make([]string, len(words))
	for i, w := range words {
		written[i] = text[start+w[0] : start+w[1]]
	}
	i := 0
	if len(words) != 1 {
		if i = slices.Index(written, diag.Suggest(meant, written)); i < 0 {
			return fix{}, false
		}
	}
	from, to := start+words[i][0], start+words[i][1]
	return fix{shown, "Replace " + written[i] + " by " + meant, textEdit{e.span(text, from, to), meant}}, true
}

// maxFixed bounds the text that a fix looks at.
const maxFixed = 1000

// names matches what a suggestion can replace.
var names = regexp.MustCompile(`[\pL_][\pL\pN_]*`)

// codeActions answers with the fixes of the diagnostics in a range. There are none while a check of
// the document's text is not finished.
func (s *session) codeActions(_ context.Context, r *jrpc2.Request) (any, error) {
	var params codeActionParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	d, _, err := s.open(params.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	actions := []codeAction{}
	if len(params.Context.Only) > 0 && !slices.ContainsFunc(params.Context.Only, func(kind string) bool { return strings.HasPrefix(quickFix, kind) }) {
		return actions, nil
	}
	s.mu.Lock()
	known := s.fixes[filepath.Clean(d.path)]
	s.mu.Unlock()
	if known.text != d.text {
		return actions, nil
	}
	for _, f := range known.all {
		if f.diagnostic.Range.overlaps(params.Range) {
			actions = append(actions, codeAction{
				Title: f.title, Kind: quickFix, Diagnostics: []diagnostic{f.diagnostic}, IsPreferred: true,
				Edit: workspaceEdit{Changes: map[string][]textEdit{d.uri: {f.edit}}},
			})
		}
	}
	return actions, nil
}

// overlaps reports whether two ranges have a position in common.
func (r span) overlaps(other span) bool {
	return !r.End.before(other.Start) && !other.End.before(r.Start)
}

func (p position) before(other position) bool {
	return p.Line < other.Line || p.Line == other.Line && p.Character < other.Character
}
