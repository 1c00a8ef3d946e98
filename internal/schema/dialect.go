package schema

import "strings"

// A dialect is a draft of JSON Schema, by its number or year.
type dialect int

const (
	draft4    dialect = 4
	draft6    dialect = 6
	draft7    dialect = 7
	draft2019 dialect = 2019
	draft2020 dialect = 2020
)

// dialects are the values of $schema, without scheme and empty fragment.
var dialects = map[string]dialect{
	"json-schema.org/schema":               draft2020,
	"json-schema.org/draft/2020-12/schema": draft2020,
	"json-schema.org/draft/2019-09/schema": draft2019,
	"json-schema.org/draft-07/schema":      draft7,
	"json-schema.org/draft-06/schema":      draft6,
	"json-schema.org/draft-04/schema":      draft4,
}

// dialectOf returns the dialect that a value of $schema names.
func dialectOf(uri string) (dialect, bool) {
	uri = strings.TrimSuffix(uri, "#")
	if rest, ok := strings.CutPrefix(uri, "http://"); ok {
		uri = rest
	} else {
		uri = strings.TrimPrefix(uri, "https://")
	}
	d, ok := dialects[uri]
	return d, ok
}
