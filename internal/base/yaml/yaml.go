// Package yaml reads YAML from strangers as what JSON can hold. It is the one
// door to the YAML library, which finds the structure of a text; what plain
// words mean is decided here, by the core schema of YAML 1.2. It bounds what a
// text can become: aliases are written out, within a budget. And it writes YAML
// which every version reads as what it was, with comments for people.
//
// Documents are printed by hand: the encoder of the library needs a tree of nodes, which
// takes several times the memory of the value, and cannot be ended early.
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

// The bounds of a text and of what it becomes.
const (
	MaxText   = 1 << 20 // bytes
	maxDepth  = 500
	maxValues = 1_000_000
	maxBytes  = 64 << 20
)

// Map is a mapping in the order of its text. Names are different.
type Map struct {
	Names  []string
	Values []any
	// Notes are comments for people, which [Append] writes above members: above
	// that of the same index, in as many lines as the text has. What stands behind
	// the last note has none, nor has what an empty one belongs to. [Parse] leaves
	// out the comments of a text.
	Notes []string
}

// Error says where a text is not what can be read. It repeats none of the text.
type Error struct {
	Line    int // 0 where it is not known
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// Parse returns the documents of a text: nil, bool, float64, string, []any and
// *[Map]. Its errors are of the type [*Error], or those of step, which is
// called for every value.
func Parse(text string, step func() error) (documents []any, err error) {
	if len(text) > MaxText {
		return nil, &Error{0, "the text is longer than 1 MiB"}
	}
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

// next reads one document. What the library panics with is an error too.
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
	return told(err)
}

// told makes an error of the library's, which may quote the text: the line is
// what is sure.
func told(err error) error {
	var line int
	if _, after, found := strings.Cut(err.Error(), "line "); found {
		_, _ = fmt.Sscanf(after, "%d", &line)
	}
	return &Error{line, "the text is not YAML"}
}

// reader makes values of nodes.
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

// known refuses tags that JSON has nothing for.
func known(n *yaml.Node, tag string) error {
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != tag {
		return &Error{n.Line, "a tag that JSON has nothing for"}
	}
	return nil
}

// mapping reads a mapping. What << merges comes behind what it says itself, and
// does not replace it.
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
			return nil, &Error{key.Line, "a key that is no text"}
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

// merge adds the members of a mapping, or of each in a list, that are not there yet.
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
		return &Error{n.Line, "<< that merges no mapping"}
	}
	for i, name := range from.Names {
		if !seen[name] {
			seen[name] = true
			m.Names, m.Values = append(m.Names, name), append(m.Values, from.Values[i])
		}
	}
	return nil
}

// The numbers of the core schema (YAML 1.2.2, section 10.3.2).
var (
	decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	based   = regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	endless = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// plain reports whether a scalar stands without quotes and without a tag.
func plain(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
}

// scalar returns what a scalar stands for. Dates are text, and so are the
// words that only older YAML took for yes and no.
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
	return nil, &Error{n.Line, "a tag that JSON has nothing for, or that does not fit its value"}
}

// word returns what a plain word stands for, and false when JSON has nothing
// for it.
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
