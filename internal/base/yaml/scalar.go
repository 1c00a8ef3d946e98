package yaml

import (
	"math"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

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
