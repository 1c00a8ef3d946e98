package scripting

import (
	"maps"
	"slices"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/yaml"
)

// going ends the work of other packages on what a script made when the call is over.
func (r *run) going() error {
	if r.stopped() {
		return errStopped
	}
	return nil
}

// printed returns the text that a printer makes of what JSON.stringify would write
// of a value, which is nil for what it leaves out.
func (r *run) printed(value goja.Value, print func(text []byte) string) goja.Value {
	text, err := r.json(value)
	if err != nil {
		panic(r.throwable(err))
	}
	out := print(text)
	if len(out) > maxText {
		panic(r.tooLong())
	}
	return r.rt.ToValue(out)
}

// plain returns the value of what yaml or toml has read.
func (r *run) plain(v any) goja.Value {
	r.proceed()
	switch v := v.(type) {
	case nil:
		return goja.Null()
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = r.plain(item)
		}
		return r.rt.NewArray(items...)
	case *yaml.Map:
		return r.object(v.Names, v.Values)
	case map[string]any:
		return r.object(sorted(v))
	}
	return r.rt.ToValue(v)
}

// object returns an object. Names that are array indexes are defined first.
func (r *run) object(names []string, values []any) goja.Value {
	o := r.rt.NewObject()
	var indexed []indexedMember
	for i, name := range names {
		v := r.plain(values[i])
		if n, ok := arrayIndex(name); ok {
			indexed = append(indexed, indexedMember{n, name, v})
		} else {
			_ = define(o, name, v)
		}
	}
	_ = defineIndexed(o, indexed)
	return o
}

// sorted returns the members of a table in the order of their names.
func sorted(table map[string]any) (names []string, values []any) {
	names = slices.Sorted(maps.Keys(table))
	for _, name := range names {
		values = append(values, table[name])
	}
	return names, values
}
