package hclfile

import (
	"bytes"

	"github.com/mcpd/mcpd/diag"
)

// settle removes the marks of merge conflicts from a text, which is that of the
// file, and all sides but the first, so that the rest is read as one version of
// the file. What it changes keeps its place.
func (f *File) settle(text []byte) diag.List {
	var problems diag.List
	open, second := -1, -1 // where the marks stand of the conflict that is read
	for at := 0; at < len(text) && len(problems) < maxDiagnostics; {
		line := text[at : at+lineLength(text[at:])]
		switch next := at + len(line); {
		case bytes.HasPrefix(line, []byte("<<<<<<< ")):
			open, second = at, -1
		case open >= 0 && second < 0 && (bytes.HasPrefix(line, []byte("||||||| ")) || string(bytes.TrimSpace(line)) == "======="):
			second = at
		case second >= 0 && bytes.HasPrefix(line, []byte(">>>>>>> ")):
			blank(text[open : open+lineLength(text[open:])])
			blank(text[second:next])
			f.left.leaveOut(f.source, second, next)
			problems = append(problems, diag.Diagnostic{
				Code: "syntax", Range: f.span(open, open+len("<<<<<<<")), Summary: "a merge left a conflict here",
				Detail: "keep one of its sides, and remove the other and the lines that begin with <<<<<<<, ======= and >>>>>>>",
			})
			open, second = -1, -1
		}
		at += len(line)
	}
	return problems
}

// blank writes spaces over all but line ends.
func blank(text []byte) {
	for i, c := range text {
		if c != '\n' && c != '\r' {
			text[i] = ' '
		}
	}
}
