package compose

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/yaml"
)

// member is a member of a mapping, with what people are told of it.
type member struct {
	name  string
	value any
	note  string
}

func is(name string, value any) member { return member{name: name, value: value} }

// because returns the member with a comment above it.
func (m member) because(note string) member {
	m.note = note
	return m
}

// when returns the member if it is wanted, and otherwise one that is left out.
func (m member) when(wanted bool) member {
	if !wanted {
		m.value = nil
	}
	return m
}

// mapping returns what the members make, but for those without a value: nil, and
// lists of nothing.
func mapping(members ...member) *yaml.Map {
	m := &yaml.Map{}
	for _, one := range members {
		if list, ok := one.value.([]any); one.value == nil || ok && len(list) == 0 {
			continue
		}
		m.Names, m.Values, m.Notes = append(m.Names, one.name), append(m.Values, one.value), append(m.Notes, one.note)
	}
	return m
}

// each returns the list of what f makes of the items.
func each[T any](items []T, f func(T) any) []any {
	var list []any
	for _, item := range items {
		list = append(list, f(item))
	}
	return list
}

// texts returns a list of texts.
func texts(items ...string) []any {
	return each(items, func(text string) any { return text })
}

// literals returns a list of texts in which $ stands for itself.
func literals(items []string) []any {
	return each(items, func(text string) any { return literal(text) })
}

// literal returns what stands for a text where $ begins something else. Compose
// interpolates every text, and Kubernetes expands $(NAME) in arguments and
// values of variables; both take $$ for $.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func number[T int | int64](n T) json.Number { return json.Number(strconv.FormatInt(int64(n), 10)) }

// file returns documents as one YAML file, below a comment.
func file(name, head string, documents ...*yaml.Map) (File, error) {
	var text []byte
	for line := range strings.SplitSeq(head, "\n") {
		text = append(append(append(text, "# "...), line...), '\n')
	}
	for i, d := range documents {
		if i > 0 {
			// Some tools cut the line end off in front of a separator: an empty line is
			// in between, so that they take none of a text that ends the document.
			text = append(text, "\n---\n"...)
		}
		part := yaml.Append(nil, d)
		if len(part) > yaml.MaxPrinted {
			return File{}, fmt.Errorf("%s: a document in it would be longer than 16 MiB", name)
		}
		text = append(text, part...)
	}
	return File{name, text}, nil
}
