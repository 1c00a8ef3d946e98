package hclfile

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// privateName matches names of private values.
var privateName = regexp.MustCompile(`(?i)passw|pwd|secret|token|api_?key|private_?key|credential|authorization|cookie`)

// publicName matches names that look private but hold a location or a description.
var publicName = regexp.MustCompile(`(?i)(_url|_uri|_file|_env|_path|_id|_type|_name|^max_.*|^env|^file|^command)$`)

// password matches the password in a URL.
var password = regexp.MustCompile(`://[^/@\s"]*:([^/@\s"]+)@`)

// shownOfSecrets are the arguments of secret and oauth blocks without private values.
var shownOfSecrets = []string{"env", "file", "command", "token_url", "authorize_url", "redirect_url", "client_id", "scopes", "audience", "auth_style"}

// RedactSecrets returns a file that is safe to show in diagnostics. It replaces literals by
// stars of the same length where a secret may be, such as in a secret block, under a name like
// "password", or in a URL, so positions do not change. The file may have any errors. If it is
// too large to parse, the result is nil. Files in other languages are unchanged.
func RedactSecrets(path string, content []byte) (shown []byte) {
	shown, _ = redacted(path, content)
	return shown
}

// SecretLiterals returns the literals that [RedactSecrets] replaces, as they are in the file. A literal
// of several lines is one for each line.
func SecretLiterals(path string, content []byte) []string {
	_, literals := redacted(path, content)
	return literals
}

func redacted(path string, content []byte) (shown []byte, literals []string) {
	switch {
	case !slices.ContainsFunc([]string{".hcl", ".hcl.json", ".mcpdvars"}, func(end string) bool { return strings.HasSuffix(path, end) }):
		return content, nil
	case len(content) > maxFile:
		return nil, nil
	}
	defer func() {
		if recover() != nil {
			shown = nil // a bug in mcpd: the redaction may be incomplete
		}
	}()
	tokens, _ := hclsyntax.LexConfig(content, path, hcl.InitialPos)
	r := redactor{shown: bytes.Clone(content), tokens: tokens, all: strings.HasSuffix(path, ".mcpdvars"), frames: make([]redactFrame, 1, 16)}
	for i := range tokens {
		r.token(i)
	}
	for _, found := range password.FindAllSubmatchIndex(r.shown, -1) {
		if !bytes.HasPrefix(r.shown[found[2]:], []byte("${")) {
			r.mask(found[2], found[3])
		}
	}
	for _, m := range r.masked {
		for line := range bytes.Lines(content[m[0]:m[1]]) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				literals = append(literals, string(line))
			}
		}
	}
	return r.shown, literals
}

// BlockSource returns the source of the top-level block that contains an offset, with secrets
// redacted as in [RedactSecrets]. It is empty if there is none, or if the file has errors there.
func BlockSource(path string, content []byte, kind Kind, offset int) string {
	f, _ := Parse(Source{Path: path, Bytes: content}, kind)
	shown := RedactSecrets(path, content)
	if f == nil || shown == nil {
		return ""
	}
	for _, b := range f.body.Blocks {
		if r := f.rng(blockRange(b)); r.Start.Byte <= offset && offset < r.End.Byte && r.End.Byte <= len(shown) {
			return string(shown[r.Start.Byte:r.End.Byte])
		}
	}
	return ""
}

// redactor processes the tokens of a file once.
type redactor struct {
	shown  []byte
	masked [][2]int // start and end of each masked literal
	tokens hclsyntax.Tokens
	// all means that every literal is redacted, as in a file of values.
	all    bool
	frames []redactFrame
	// deeper counts the open braces beyond maxFrames. They share one frame.
	deeper int
}

// maxFrames exceeds the nesting of every valid file.
const maxFrames = 256

// redactFrame is the state between two braces.
type redactFrame struct {
	// secret means that the braces are in a secret block; private means that all literals in
	// them are redacted.
	secret, private bool
	// words are the words of the current statement: the type and labels of a block, or the name
	// of an argument. value means that the value of an argument has started.
	words []string
	value bool
	// hidden means that the literals of this value are redacted.
	hidden bool
	// lists counts the open brackets in the value.
	lists int
}

func (r *redactor) token(i int) {
	if r.declares(i) {
		// Ignore everything left open before it.
		r.frames, r.deeper = append(r.frames[:0], redactFrame{}), 0
	}
	top := &r.frames[len(r.frames)-1]
	switch t := r.tokens[i]; t.Type {
	case hclsyntax.TokenOBrace:
		if len(r.frames) == maxFrames {
			r.deeper++
			return
		}
		r.frames = append(r.frames, r.opened(i, top))
	case hclsyntax.TokenCBrace:
		if r.deeper > 0 {
			r.deeper--
		} else if len(r.frames) > 1 {
			r.frames = r.frames[:len(r.frames)-1]
		}
	case hclsyntax.TokenOBrack, hclsyntax.TokenOParen:
		top.lists++
	case hclsyntax.TokenCBrack, hclsyntax.TokenCParen:
		top.lists = max(0, top.lists-1)
	case hclsyntax.TokenNewline, hclsyntax.TokenComma:
		if top.lists == 0 {
			top.words, top.value, top.hidden = nil, false, false
		}
	case hclsyntax.TokenEqual, hclsyntax.TokenColon:
		if !top.value {
			top.value, top.hidden = true, r.hides(i, top)
		}
	case hclsyntax.TokenIdent:
		if !top.value {
			if len(top.words) > 0 && top.words[0] == "secret" {
				r.maskToken(i) // the quote of a label may start a value
			}
			top.words = append(top.words, string(t.Bytes))
		} else if (top.hidden || top.private) && top.secret && !r.refers(i) {
			r.maskToken(i)
		}
	case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenNumberLit:
		if !top.value {
			top.words = append(top.words, string(t.Bytes))
		} else if top.hidden || top.private || r.all {
			r.maskToken(i)
		}
	}
}

// declares reports whether a secret or variable block starts at token i, on a new line.
func (r *redactor) declares(i int) bool {
	t := r.tokens[i]
	return t.Type == hclsyntax.TokenIdent && (string(t.Bytes) == "secret" || string(t.Bytes) == "variable") &&
		(i == 0 || r.tokens[i-1].Type == hclsyntax.TokenNewline) && i+1 < len(r.tokens) && r.tokens[i+1].Type == hclsyntax.TokenOQuote
}

// opened returns the frame of the brace at token i.
func (r *redactor) opened(i int, outer *redactFrame) redactFrame {
	words := outer.words
	inner := redactFrame{secret: outer.secret, private: outer.private || outer.value && outer.hidden && !outer.secret}
	if len(words) > 0 {
		inner.secret = inner.secret || words[0] == "secret"
		inner.private = inner.private || words[0] == "variable" && r.isSensitive(i) ||
			words[0] == "header" && privateName.MatchString(words[len(words)-1]) && !r.usesSecret(i)
	}
	if !outer.value {
		outer.words = nil
	}
	return inner
}

// hides reports whether the value after token i is redacted.
func (r *redactor) hides(i int, in *redactFrame) bool {
	if len(in.words) == 0 {
		return in.secret
	}
	name := in.words[len(in.words)-1]
	if in.secret {
		return !slices.Contains(shownOfSecrets, name)
	}
	return name != "secret" && privateName.MatchString(name) && !publicName.MatchString(name) && !r.usesSecret(i)
}

// isSensitive reports whether the brace at token i opens the block of a sensitive variable.
func (r *redactor) isSensitive(i int) bool {
	return slices.ContainsFunc(r.inside(i), func(t hclsyntax.Token) bool {
		return string(t.Bytes) == "sensitive"
	})
}

// usesSecret reports whether the block or line after token i refers to a secret.
func (r *redactor) usesSecret(i int) bool {
	return slices.ContainsFunc(r.inside(i), func(t hclsyntax.Token) bool {
		return t.Type == hclsyntax.TokenIdent && string(t.Bytes) == "secret"
	})
}

// lookahead bounds the tokens that classify a value or block.
const lookahead = 256

// inside returns the tokens from i: for a brace, up to its closing brace; otherwise, up to the
// end of the line.
func (r *redactor) inside(i int) hclsyntax.Tokens {
	depth := 0
	end := min(len(r.tokens), i+lookahead)
	for j := i; j < end; j++ {
		switch r.tokens[j].Type {
		case hclsyntax.TokenOBrace:
			depth++
		case hclsyntax.TokenCBrace:
			depth--
		}
		closed := r.tokens[i].Type == hclsyntax.TokenOBrace && depth == 0
		if closed || r.tokens[j].Type == hclsyntax.TokenNewline && depth <= 0 {
			return r.tokens[i:j]
		}
	}
	return r.tokens[i:end]
}

// refers reports whether the name at token i is part of a reference, or a keyword. Neither is
// private.
func (r *redactor) refers(i int) bool {
	switch string(r.tokens[i].Bytes) {
	case "true", "false", "null":
		return true
	}
	dot := func(j int) bool { return j >= 0 && j < len(r.tokens) && r.tokens[j].Type == hclsyntax.TokenDot }
	return dot(i-1) || dot(i+1)
}

func (r *redactor) maskToken(i int) {
	r.mask(r.tokens[i].Range.Start.Byte, r.tokens[i].Range.End.Byte)
}

// mask replaces bytes, except line ends.
func (r *redactor) mask(start, end int) {
	r.masked = append(r.masked, [2]int{start, end})
	for i := start; i < end; i++ {
		if b := r.shown[i]; b != '\n' && b != '\r' {
			r.shown[i] = '*'
		}
	}
}
