// Package yaml converts untrusted YAML to JSON values. It is the only user of the YAML
// library, which parses the structure of a text; the meaning of plain words is decided
// here, by the core schema of YAML 1.2. It bounds the result: aliases are expanded
// within a budget. It also writes YAML that every version reads in the same way, with
// comments.
//
// Documents are printed by hand: the encoder of the library needs a tree of nodes,
// which takes several times the memory of the value, and cannot be stopped early.
package yaml

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a text and of its value.
const (
	MaxText   = 1 << 20 // bytes
	maxDepth  = 500
	maxValues = 1_000_000
	maxBytes  = 64 << 20
)

// Map is a mapping in the order of the text. Names are unique.
type Map struct {
	Names  []string
	Values []any
	// Notes are comments that [Append] writes above the members with the same index,
	// one line for each line of the note. Members beyond the last note, and those with
	// an empty note, have none. [Parse] ignores comments.
	Notes []string
}

// Error is a syntax or content error with its line. It contains none of the text.
type Error struct {
	Line    int // 0 if it is unknown
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// Parse returns the documents in a text: nil, bool, float64, string, []any and *[Map].
// It calls step for every value. Errors are of type [*Error], or come from step.
func Parse(text string, step func() error) (documents []any, err error) {
	if len(text) > MaxText {
		return nil, &Error{0, "the text is longer than 1 MiB"}
	}
	return ParseLong(text, step)
}

// ParseLong is [Parse] for a text that the caller has bounded.
func ParseLong(text string, step func() error) (documents []any, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	r := reader{step: step}
	for {
		var root yaml.Node
		switch err := next(decoder, &root); {
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, err
		}
		v, err := r.value(&root)
		if err != nil {
			return nil, err
		}
		documents = append(documents, v)
	}
}

// next reads one document. It turns a panic of the library into an error.
func next(decoder *yaml.Decoder, root *yaml.Node) (err error) {
	defer func() {
		if recover() != nil {
			err = &Error{0, "the text cannot be read as YAML"}
		}
	}()
	err = decoder.Decode(root)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return lineError(err)
}

// lineError converts an error of the library, which may quote the text: only the line is
// used.
func lineError(err error) error {
	var line int
	if _, after, found := strings.Cut(err.Error(), "line "); found {
		_, _ = fmt.Sscanf(after, "%d", &line)
	}
	return &Error{line, "the text is not YAML"}
}

// reader converts nodes to values.
type reader struct {
	step                 func() error
	depth, values, bytes int
}

func (r *reader) value(n *yaml.Node) (any, error) {
	if r.values++; r.values > maxValues {
		return nil, &Error{n.Line, "more than 1,000,000 values, aliases written out"}
	}
	if err := r.step(); err != nil {
		return nil, err
	}
	if r.depth++; r.depth > maxDepth {
		return nil, &Error{n.Line, "nested deeper than 500, or within itself"}
	}
	defer func() { r.depth-- }()
	switch n.Kind {
	case yaml.DocumentNode:
		return r.value(n.Content[0])
	case yaml.AliasNode:
		return r.value(n.Alias)
	case yaml.SequenceNode:
		return r.list(n)
	case yaml.MappingNode:
		return r.mapping(n)
	}
	if r.bytes += len(n.Value); r.bytes > maxBytes {
		return nil, &Error{n.Line, "more than 64 MiB of text, aliases written out"}
	}
	return scalar(n)
}

func (r *reader) list(n *yaml.Node) (any, error) {
	if err := known(n, "!!seq"); err != nil {
		return nil, err
	}
	list := make([]any, 0, len(n.Content))
	for _, item := range n.Content {
		v, err := r.value(item)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// known rejects tags without a JSON counterpart.
func known(n *yaml.Node, tag string) error {
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != tag {
		return &Error{n.Line, "a tag that JSON does not have"}
	}
	return nil
}

// mapping reads a mapping. Members merged by << come after its own members, and do not
// replace them.
func (r *reader) mapping(n *yaml.Node) (any, error) {
	if err := known(n, "!!map"); err != nil {
		return nil, err
	}
	m := &Map{}
	seen := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, &Error{key.Line, "a key that is not text"}
		case plain(key) && key.Value == "<<":
			merged = append(merged, value)
			continue
		case seen[key.Value]:
			return nil, &Error{key.Line, "a second key of the name"}
		}
		if err := r.member(m, seen, key, value); err != nil {
			return nil, err
		}
	}
	for _, value := range merged {
		if err := r.merge(m, seen, value, true); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (r *reader) member(m *Map, seen map[string]bool, key, value *yaml.Node) error {
	if r.bytes += len(key.Value); r.bytes > maxBytes {
		return &Error{key.Line, "more than 64 MiB of text, aliases written out"}
	}
	v, err := r.value(value)
	if err != nil {
		return err
	}
	seen[key.Value] = true
	m.Names, m.Values = append(m.Names, key.Value), append(m.Values, v)
	return nil
}

// merge adds the missing members of a mapping, or of each mapping in a list.
func (r *reader) merge(m *Map, seen map[string]bool, n *yaml.Node, lists bool) error {
	if n.Kind == yaml.SequenceNode && lists {
		for _, item := range n.Content {
			if err := r.merge(m, seen, item, false); err != nil {
				return err
			}
		}
		return nil
	}
	v, err := r.value(n)
	if err != nil {
		return err
	}
	from, ok := v.(*Map)
	if !ok {
		return &Error{n.Line, "<< that does not merge a mapping"}
	}
	for i, name := range from.Names {
		if !seen[name] {
			seen[name] = true
			m.Names, m.Values = append(m.Names, name), append(m.Values, from.Values[i])
		}
	}
	return nil
}

// Numbers of the core schema (YAML 1.2.2, section 10.3.2).
var (
	decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	based   = regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	endless = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// plain reports whether a scalar has no quotes and no tag.
func plain(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
}

// scalar returns the value of a scalar. Dates are strings, and so are the words that
// only older YAML versions read as booleans.
func scalar(n *yaml.Node) (any, error) {
	if n.Style&yaml.TaggedStyle == 0 {
		if !plain(n) {
			return n.Value, nil
		}
		v, ok := word(n.Value)
		if !ok {
			return nil, &Error{n.Line, "a number that JSON cannot hold; put it in quotes"}
		}
		return v, nil
	}
	v, ok := word(n.Value)
	_, number := v.(float64)
	_, truth := v.(bool)
	switch tag := n.ShortTag(); {
	case tag == "!!str", tag == "!!timestamp", tag == "!":
		return n.Value, nil
	case tag == "!!null" && v == nil && ok, tag == "!!bool" && truth, tag == "!!int" && number && v == math.Trunc(v.(float64)), tag == "!!float" && number:
		return v, nil
	}
	return nil, &Error{n.Line, "a tag that JSON does not have, or that does not fit its value"}
}

// word returns the value of a plain word, or false if JSON has no such value.
func word(text string) (any, bool) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil, true
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	switch {
	case decimal.MatchString(text):
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	case based.MatchString(text):
		base := map[byte]int{'o': 8, 'x': 16}[text[1]]
		n, err := strconv.ParseUint(text[2:], base, 64)
		return float64(n), err == nil
	case endless.MatchString(text):
		return nil, false
	}
	return text, true
}
