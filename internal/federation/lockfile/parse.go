package lockfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// maxFile bounds the length of a lock file, in bytes.
const maxFile = 64 << 20

// ParseError is an error in a lock file.
type ParseError struct {
	// Line is the line number from 1, or 0 for an error of the whole file.
	Line int
	// Err describes the error; it is safe for terminals.
	Err error
}

func (e *ParseError) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

func (e *ParseError) Unwrap() error { return e.Err }

func parseError(line int, format string, args ...any) error {
	return &ParseError{line, fmt.Errorf(format, args...)}
}

// errMergeConflict reports unresolved merge conflict markers.
var errMergeConflict = errors.New("merge conflict is not resolved")

// Parse parses a lock file. Blocks may be in any order, with comments and blank lines between
// them. The error is a [*ParseError] that names the tool: for a definition that does not match
// its hash, a duplicate tool, and everything that [Lock.Encode] does not write.
func Parse(file []byte) (*Lock, error) {
	if len(file) > maxFile {
		return nil, parseError(0, "the file is longer than %d MiB", maxFile>>20)
	}
	if err := checkVisible(file); err != nil {
		return nil, err
	}
	r := reader{rest: string(file), tools: lockBuilder{}, lines: map[Tool]int{}}
	for r.next() {
		if err := r.block(); err != nil {
			return nil, err
		}
	}
	if !r.versioned {
		return nil, parseError(0, "the file has no line %q", version)
	}
	return r.tools.lock(), nil
}

// checkVisible rejects characters that move others or are invisible, which [Lock.Encode]
// escapes: a reviewer would not see what is parsed.
func checkVisible(file []byte) error {
	number := 1
	for _, r := range string(file) {
		switch {
		case r == '\n':
			number++
		case r < utf8.RuneSelf && r >= ' ', r == '\t', r == '\r':
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return parseError(number, "the character %U is not escaped", r)
		}
	}
	return nil
}

type reader struct {
	rest      string
	line      string
	number    int // line number, from 1
	versioned bool
	tools     lockBuilder
	lines     map[Tool]int // the line of each tool; keys have only the names
}

// next advances to the next line, or returns false at the end.
func (r *reader) next() bool {
	if r.rest == "" {
		return false
	}
	r.line, r.rest, _ = strings.Cut(r.rest, "\n")
	r.line = strings.TrimRight(r.line, " \t\r")
	r.number++
	return true
}

func (r *reader) block() error {
	rest, isTool := strings.CutPrefix(r.line, toolWord)
	switch {
	case r.line == "" || r.line[0] == '#':
		return nil
	case !r.versioned:
		if r.line != version {
			return parseError(r.number, "want %q, the version that this mcpd reads", version)
		}
		r.versioned = true
		return nil
	case isTool:
		return r.tool(rest)
	}
	rest, isUpstream := strings.CutPrefix(r.line, upstreamWord)
	upstream, rest, ok := cutQuoted(rest)
	switch {
	case isMergeMarker(r.line):
		return parseError(r.number, "%w", errMergeConflict)
	case !isUpstream || !ok || rest != "":
		return parseError(r.number, "want %sNAME or %sUPSTREAM NAME, each name a JSON string", upstreamWord, toolWord)
	}
	r.tools.addUpstream(upstream)
	return nil
}

// tool parses the block of a tool after its keyword.
func (r *reader) tool(names string) error {
	number := r.number
	upstream, rest, ok := cutQuoted(names)
	rest, blank := strings.CutPrefix(rest, " ")
	name, rest, named := cutQuoted(rest)
	if !ok || !blank || !named || rest != "" {
		return parseError(number, "want %sUPSTREAM NAME, each name a JSON string", toolWord)
	}
	t, err := r.definition(upstream, name)
	key := Tool{upstream: upstream, name: name}
	if first, duplicate := r.lines[key]; err == nil && duplicate {
		err = fmt.Errorf("it is also in line %d; remove one of the two", first)
	}
	if err != nil {
		if within, ok := errors.AsType[*ParseError](err); ok {
			number, err = within.Line, within.Err
		}
		return parseError(number, "tool %s: %w", label(upstream, name), err)
	}
	r.lines[key] = number
	r.tools.addUpstream(upstream)
	r.tools[upstream][name] = t
	return nil
}

func (r *reader) definition(upstream, name string) (Tool, error) {
	if !r.next() || !strings.HasPrefix(r.line, hashWord) {
		return Tool{}, fmt.Errorf("want %sand the hash of the definition in the next line", hashWord)
	}
	hash := strings.TrimPrefix(r.line, hashWord)
	following, _, _ := strings.Cut(r.rest, "\n")
	asIs := strings.TrimRight(following, " \t\r")+"\n" == rawLine && r.next()
	raw, err := r.prettyJSON()
	if err != nil {
		return Tool{}, err
	}
	if err := jsonguard.Check(raw, jsonguard.Limits{Bytes: maxFile, Depth: maxDepth, Tokens: maxTokens}); err != nil {
		return Tool{}, fmt.Errorf("read definition: %w", err)
	}
	value, err := decode(raw)
	if err != nil {
		return Tool{}, fmt.Errorf("read definition: %w", err)
	}
	t, err := newTool(upstream, value, maxFile)
	switch {
	case err != nil:
		return Tool{}, fmt.Errorf("read definition: %w", err)
	case t.Hash() != hash || t.definition != string(appendValue(nil, value)):
		return Tool{}, errors.New("the definition does not match its sha256: it was edited by hand, or mixed by a merge")
	case t.name != name:
		return Tool{}, errors.New("the definition has another name")
	case asIs && !t.hides:
		return Tool{}, errors.New("the line raw is for definitions with invisible characters, and this one has none; remove the line")
	case asIs:
		t = t.AsRaw()
	}
	return t, nil
}

// prettyJSON parses the lines of a definition and returns them as JSON. All lines but the first
// and the last are indented.
func (r *reader) prettyJSON() ([]byte, error) {
	if !r.next() || r.line != "{" {
		return nil, errors.New("want { and the definition in the line after its sha256")
	}
	j := lineJoiner{json: []byte("{")}
	for r.next() {
		switch {
		case r.line == "}":
			return append(j.json, '}'), nil
		case isMergeMarker(r.line):
			return nil, parseError(r.number, "%w", errMergeConflict)
		case r.line != "" && r.line[0] != ' ' && r.line[0] != '\t':
			return nil, fmt.Errorf("the definition has no end before line %d", r.number)
		}
		j.add(r.line)
	}
	return nil, errors.New("the definition has no end")
}

// isMergeMarker reports whether a line is a conflict marker of git.
func isMergeMarker(line string) bool {
	return slices.ContainsFunc([]string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"}, func(mark string) bool { return strings.HasPrefix(line, mark) })
}

// cutQuoted cuts a JSON string off the start of a text.
func cutQuoted(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", text, false
	}
	for end := 1; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case '"':
			literal := []byte(text[:end+1])
			ok = jsonguard.Check(literal, jsonguard.Limits{}) == nil && json.Unmarshal(literal, &value) == nil
			return value, text[end+1:], ok
		}
	}
	return "", text, false
}
