package lsp

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/creachadair/jrpc2"
)

// tokenTypes are the types of semantic tokens, in the order of the legend.
var tokenTypes = []string{"keyword", "type", "property", "variable", "function", "string", "number", "comment"}

// Indexes of tokenTypes.
const (
	semanticKeyword = iota
	semanticType
	semanticProperty
	semanticVariable
	semanticFunction
	semanticString
	semanticNumber
	semanticComment
)

// maxSemantic bounds the tokens of an answer, and maxSemanticText the text that has tokens. The
// grammar of the editor colors the rest.
const (
	maxSemantic     = 100_000
	maxSemanticText = 1 << 20
)

// semanticToken is a token with its type.
type semanticToken struct{ start, end, typ int }

// semanticTokens answers with the tokens of a document, also in its scripts, CEL and SQL.
func (s *session) semanticTokens(_ context.Context, r *jrpc2.Request) (any, error) {
	var params semanticParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	d, unit, err := s.open(params.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(d.path, ".hcl") || len(d.text) > maxSemanticText {
		return semanticTokens{Data: []uint32{}}, nil
	}
	s.mu.Lock()
	project := s.project
	s.mu.Unlock()
	s.indexing.Lock()
	file := s.documentSource(d, project)
	s.indexing.Unlock()
	start, end := 0, len(d.text)
	if params.Range != nil {
		start, end = unit.offset(d.text, params.Range.Start), unit.offset(d.text, params.Range.End)
	}
	return semanticTokens{Data: unit.encodeTokens(d.text, file.semanticTokens(), start, end)}, nil
}

// encodeTokens encodes the tokens that overlap a range: for each line of a token, the distance to the
// token before, the length, the type and no modifiers.
func (e encoding) encodeTokens(text string, tokens []semanticToken, start, end int) []uint32 {
	data := []uint32{}
	at, now, before := 0, position{}, position{}
	// advance moves at and now to an offset.
	advance := func(to int) {
		for {
			i := strings.IndexByte(text[at:to], '\n')
			if i < 0 {
				break
			}
			at += i + 1
			now = position{now.Line + 1, 0}
		}
		now.Character += e.units(text[at:to])
		at = to
	}
	for _, t := range tokens {
		if t.end <= start || t.start >= end {
			continue
		}
		from := t.start
		for line := range strings.Lines(text[t.start:t.end]) {
			stop := from + len(strings.TrimRight(line, "\r\n"))
			if from < stop {
				advance(from)
				column := now.Character
				if now.Line == before.Line {
					column -= before.Character
				}
				data = append(data, now.Line-before.Line, column, e.units(text[from:stop]), uint32(t.typ), 0)
				if before = now; len(data) >= 5*maxSemantic {
					return data
				}
			}
			from += len(line)
		}
	}
	return data
}

// semanticTokens returns the tokens of a file in the order of their offsets. They do not overlap.
func (s *source) semanticTokens() []semanticToken {
	var found []semanticToken
	add := func(start, end, typ int) {
		if start < end {
			found = append(found, semanticToken{start, end, typ})
		}
	}
	visit := func(b *block) {
		for i := range b.arguments {
			a := &b.arguments[i]
			add(a.start, a.nameEnd, semanticProperty)
			if !a.hasEqual {
				continue
			}
			if c, ok := s.codeOf(b, a); ok && c.literal {
				add(a.value, c.start, semanticString)
				tokens, _ := tokensOf(s.text, c.start, c.end, c.language)
				found = appendTokens(found, tokens, true)
				add(c.end, a.valueEnd, semanticString)
				continue
			}
			found = appendTokens(found, s.valueTokens(a), false)
		}
	}
	visit(s.root)
	s.root.each(func(b *block) {
		add(b.kindStart, b.kindStart+len(b.kind), semanticKeyword)
		for _, l := range b.labels {
			add(l.start, l.end, semanticType)
		}
		visit(b)
	})
	slices.SortFunc(found, func(a, b semanticToken) int { return cmp.Compare(a.start, b.start) })
	return s.withComments(found)
}

// withComments adds the comments between tokens, and drops tokens that overlap the one before.
func (s *source) withComments(tokens []semanticToken) []semanticToken {
	all := make([]semanticToken, 0, len(tokens))
	o := &outliner{text: s.text}
	comments := func(end int) {
		for o.at < end {
			start := o.at
			if !o.skipComment() {
				o.at++
			} else if start < end {
				all = append(all, semanticToken{start, min(o.at, end), semanticComment})
			}
		}
	}
	for _, t := range tokens {
		if t.start < o.at {
			continue
		}
		comments(t.start)
		o.at = t.end
		all = append(all, t)
	}
	comments(len(s.text))
	return all
}

// contextual are the words of scripts that are keywords in some places.
var contextual = []string{"async", "await", "from", "interface", "let", "of", "type"}

// appendTokens appends tokens of code, or of the value of an argument.
func appendTokens(found []semanticToken, tokens []token, isCode bool) []semanticToken {
	for i, t := range tokens {
		typ := semanticVariable
		switch t.kind {
		case signToken:
			continue
		case commentToken:
			typ = semanticComment
		case stringToken:
			typ = semanticString
		case numberToken:
			typ = semanticNumber
		case keywordToken:
			typ = semanticKeyword
		case wordToken:
			switch next := following(tokens, i); {
			case next == "(":
				typ = semanticFunction
			case t.member, !isCode && (next == "=" || next == ":"):
				typ = semanticProperty
			case isCode && slices.Contains(contextual, t.text), !isCode && slices.Contains([]string{"true", "false", "null", "for", "in", "if"}, t.text):
				typ = semanticKeyword
			}
		}
		found = append(found, semanticToken{t.start, t.end, typ})
	}
	return found
}

// following returns the text of the token after one, or "".
func following(tokens []token, i int) string {
	if i+1 < len(tokens) {
		return tokens[i+1].text
	}
	return ""
}
