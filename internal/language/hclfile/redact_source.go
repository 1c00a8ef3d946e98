package hclfile

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// privateName is a name of what people keep to themselves.
var privateName = regexp.MustCompile(`(?i)passw|pwd|secret|token|api_?key|private_?key|credential|authorization|cookie`)

// publicName is a name that looks like one, of what says where a value is.
var publicName = regexp.MustCompile(`(?i)(_url|_uri|_file|_env|_path|_id|_type|_name|^max_.*|^env|^file|^command)$`)

// password is that of an address.
var password = regexp.MustCompile(`://[^/@\s"]*:([^/@\s"]+)@`)

// shownOfSecrets are the arguments of secret and oauth blocks that hold no value.
var shownOfSecrets = []string{"env", "file", "command", "token_url", "authorize_url", "redirect_url", "client_id", "scopes", "audience", "auth_style"}

// Shown returns a file as diagnostics may show it. Where a secret belongs, such as
// in a secret block, under a name like "password" or in an address, literals are
// masked by as many stars, so that places stay what they are. The file may have
// mistakes of every kind; one that is too large to be read is not shown at all.
// Files of other languages are shown as they are.
func RedactSecrets(path string, content []byte) (shown []byte) {
	switch {
	case !slices.ContainsFunc([]string{".hcl", ".hcl.json", ".mcpdvars"}, func(end string) bool { return strings.HasSuffix(path, end) }):
		return content
	case len(content) > maxFile:
		return nil
	}
	defer func() {
		if recover() != nil {
			shown = nil // a mistake in mcpd: the masks may be incomplete
		}
	}()
	tokens, _ := hclsyntax.LexConfig(content, path, hcl.InitialPos)
	m := redactor{shown: bytes.Clone(content), tokens: tokens, all: strings.HasSuffix(path, ".mcpdvars"), frames: make([]redactFrame, 1, 16)}
	for i := range tokens {
		m.token(i)
	}
	for _, found := range password.FindAllSubmatchIndex(m.shown, -1) {
		if !bytes.HasPrefix(m.shown[found[2]:], []byte("${")) {
			m.mask(found[2], found[3])
		}
	}
	return m.shown
}

// masker goes over the words of a file once.
type redactor struct {
	shown  []byte
	tokens hclsyntax.Tokens
	// all says that every literal is masked: those of a file of values.
	all    bool
	frames []redactFrame
	// deeper is how many braces are open beyond maxFrames: those are all one.
	deeper int
}

// maxFrames is deeper than any file nests that is loaded.
const maxFrames = 256

// maskFrame is what is known between two braces.
type redactFrame struct {
	// secret says that the braces are those of a secret block, or within it, and
	// private that all literals in them are.
	secret, private bool
	// words are those of the statement so far: the type and labels of a block, or
	// the name of an argument. value says that an argument's value has begun.
	words []string
	value bool
	// hidden says that the literals of this value are masked.
	hidden bool
	// lists is how many brackets are open in the value.
	lists int
}

func (m *redactor) token(i int) {
	if m.declares(i) {
		// Whatever was left open before it.
		m.frames, m.deeper = append(m.frames[:0], redactFrame{}), 0
	}
	top := &m.frames[len(m.frames)-1]
	switch t := m.tokens[i]; t.Type {
	case hclsyntax.TokenOBrace:
		if len(m.frames) == maxFrames {
			m.deeper++
			return
		}
		m.frames = append(m.frames, m.opened(i, top))
	case hclsyntax.TokenCBrace:
		if m.deeper > 0 {
			m.deeper--
		} else if len(m.frames) > 1 {
			m.frames = m.frames[:len(m.frames)-1]
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
			top.value, top.hidden = true, m.hides(i, top)
		}
	case hclsyntax.TokenIdent:
		if !top.value {
			if len(top.words) > 0 && top.words[0] == "secret" {
				m.maskToken(i) // the quote of a label may be that of a value
			}
			top.words = append(top.words, string(t.Bytes))
		} else if (top.hidden || top.private) && top.secret && !m.refers(i) {
			m.maskToken(i)
		}
	case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenNumberLit:
		if !top.value {
			top.words = append(top.words, string(t.Bytes))
		} else if top.hidden || top.private || m.all {
			m.maskToken(i)
		}
	}
}

// declares reports whether a secret or a variable is declared at i, on a line of
// its own.
func (m *redactor) declares(i int) bool {
	t := m.tokens[i]
	return t.Type == hclsyntax.TokenIdent && (string(t.Bytes) == "secret" || string(t.Bytes) == "variable") &&
		(i == 0 || m.tokens[i-1].Type == hclsyntax.TokenNewline) && i+1 < len(m.tokens) && m.tokens[i+1].Type == hclsyntax.TokenOQuote
}

// opened returns the frame of the brace at i.
func (m *redactor) opened(i int, outer *redactFrame) redactFrame {
	words := outer.words
	inner := redactFrame{secret: outer.secret, private: outer.private || outer.value && outer.hidden && !outer.secret}
	if len(words) > 0 {
		inner.secret = inner.secret || words[0] == "secret"
		inner.private = inner.private || words[0] == "variable" && m.isSensitive(i) ||
			words[0] == "header" && privateName.MatchString(words[len(words)-1]) && !m.usesSecret(i)
	}
	if !outer.value {
		outer.words = nil
	}
	return inner
}

// hides reports whether the value that begins behind i is masked.
func (m *redactor) hides(i int, in *redactFrame) bool {
	if len(in.words) == 0 {
		return in.secret
	}
	name := in.words[len(in.words)-1]
	if in.secret {
		return !slices.Contains(shownOfSecrets, name)
	}
	return name != "secret" && privateName.MatchString(name) && !publicName.MatchString(name) && !m.usesSecret(i)
}

// isSensitive reports whether the block that the brace at i opens is that of a
// sensitive variable.
func (m *redactor) isSensitive(i int) bool {
	return slices.ContainsFunc(m.inside(i), func(t hclsyntax.Token) bool {
		return string(t.Bytes) == "sensitive"
	})
}

// usesSecret reports whether the block, or the line, behind i refers to a secret.
func (m *redactor) usesSecret(i int) bool {
	return slices.ContainsFunc(m.inside(i), func(t hclsyntax.Token) bool {
		return t.Type == hclsyntax.TokenIdent && string(t.Bytes) == "secret"
	})
}

// lookahead is how many words are looked at to tell what a value or a block is.
const lookahead = 256

// inside returns the words behind i: of a brace up to the one that closes it, of
// others up to the end of the line.
func (m *redactor) inside(i int) hclsyntax.Tokens {
	depth := 0
	most := min(len(m.tokens), i+lookahead)
	for j := i; j < most; j++ {
		switch m.tokens[j].Type {
		case hclsyntax.TokenOBrace:
			depth++
		case hclsyntax.TokenCBrace:
			depth--
		}
		closed := m.tokens[i].Type == hclsyntax.TokenOBrace && depth == 0
		if closed || m.tokens[j].Type == hclsyntax.TokenNewline && depth <= 0 {
			return m.tokens[i:j]
		}
	}
	return m.tokens[i:most]
}

// refers reports whether the name at i is part of a reference, or a word of the
// language: the value of nothing.
func (m *redactor) refers(i int) bool {
	switch string(m.tokens[i].Bytes) {
	case "true", "false", "null":
		return true
	}
	dot := func(j int) bool { return j >= 0 && j < len(m.tokens) && m.tokens[j].Type == hclsyntax.TokenDot }
	return dot(i-1) || dot(i+1)
}

func (m *redactor) maskToken(i int) {
	m.mask(m.tokens[i].Range.Start.Byte, m.tokens[i].Range.End.Byte)
}

// mask replaces the bytes of a piece, but for what ends lines.
func (m *redactor) mask(start, end int) {
	for i := start; i < end; i++ {
		if b := m.shown[i]; b != '\n' && b != '\r' {
			m.shown[i] = '*'
		}
	}
}
