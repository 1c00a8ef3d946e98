package uritemplate

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Expand returns the URI that the values make. It fails when [Template.Match]
// would not return these values from it: when one is empty or missing that must
// not be, is not UTF-8, or makes the URI too long.
func (t *Template) Expand(values map[string]string) (string, error) {
	var uri []byte
	for i := range t.parts {
		p := &t.parts[i]
		switch p.kind {
		case literal:
			uri = append(uri, p.text...)
		case pairs:
			uri = p.appendPairs(uri, values)
		default:
			value := values[p.names[0]]
			if value == "" {
				return "", fmt.Errorf("the variable %q has no value", p.names[0])
			}
			uri = appendValue(uri, value, p.kind)
		}
	}
	for _, name := range t.names {
		if !utf8.ValidString(values[name]) {
			return "", fmt.Errorf("the value of %q is not UTF-8", name)
		}
	}
	if len(uri) > MaxURI {
		return "", errors.New("the URI is too long")
	}
	return string(uri), nil
}

// appendPairs appends the pairs that have values.
func (p *part) appendPairs(uri []byte, values map[string]string) []byte {
	first := true
	for _, name := range p.names {
		value, ok := values[name]
		if !ok {
			continue
		}
		uri = append(append(uri, p.separator(first)), name...)
		if value != "" || p.operator != ';' {
			uri = append(uri, '=')
		}
		uri = appendValue(uri, value, simple)
		first = false
	}
	return uri
}

// appendValue appends a value, with everything percent-encoded that values of
// the kind cannot hold.
func appendValue(uri []byte, value string, k kind) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(value) {
		if c := value[i]; isUnreserved(c) || k == reserved && isReserved(c) {
			uri = append(uri, c)
		} else {
			uri = append(uri, '%', hex[c>>4], hex[c&15])
		}
	}
	return uri
}
