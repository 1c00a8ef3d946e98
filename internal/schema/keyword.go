package schema

// A shape is what the value of a keyword must look like.
type shape int

const (
	anything     shape = iota
	oneSchema          // a schema
	manySchemas        // an array of schemas, not empty
	namedSchemas       // an object of schemas
	schemaOrList       // a schema, or an array of them before draft 2020-12
	dependencies       // an object of schemas and lists of names
	aCount             // an integer that is not negative
	aNumber
	aStep    // a number above zero
	aLimit   // a number, or in draft 4 a boolean
	aText    // a string
	aPattern // a string that is a regular expression
	aFormat  // a string that names a format
	aFlag    // a boolean
	nameList // an array of different strings
	namedNames
	aType // the name of a type, or an array of them
	aList
)

// how says what a keyword applies its schemas to.
type how int

const (
	nowhere  how = iota // nothing: it only holds them
	inPlace             // the value itself
	inMember            // one member each
	inItem              // one item each
	inAny               // any members or items, also those that others apply to
)

// A keyword is a member of a schema that means something.
type keyword struct {
	shape shape
	how   how
	// since is the first dialect that has it, and until the last; zero is any.
	since, until dialect
}

// keywords are those of all dialects.
var keywords = map[string]keyword{
	"$schema": {shape: aText}, "$id": {shape: aText, since: draft6}, "id": {shape: aText, until: draft4},
	"$ref": {shape: aText}, "$anchor": {shape: aText, since: draft2019}, "$comment": {shape: aText}, "$vocabulary": {},
	"$dynamicRef": {shape: aText, since: draft2020}, "$dynamicAnchor": {shape: aText, since: draft2020},
	"$recursiveRef": {shape: aText, since: draft2019}, "$recursiveAnchor": {shape: aFlag, since: draft2019},
	"$defs": {shape: namedSchemas}, "definitions": {shape: namedSchemas},

	"allOf": {shape: manySchemas, how: inPlace}, "anyOf": {shape: manySchemas, how: inPlace}, "oneOf": {shape: manySchemas, how: inPlace},
	"not": {shape: oneSchema, how: inPlace}, "if": {shape: oneSchema, how: inPlace, since: draft7},
	"then": {shape: oneSchema, how: inPlace, since: draft7}, "else": {shape: oneSchema, how: inPlace, since: draft7},
	"dependentSchemas": {shape: namedSchemas, how: inPlace, since: draft2019}, "dependencies": {shape: dependencies, how: inPlace},

	"properties": {shape: namedSchemas, how: inMember}, "patternProperties": {shape: namedSchemas, how: inAny},
	"additionalProperties": {shape: oneSchema, how: inMember}, "propertyNames": {shape: oneSchema, how: inAny, since: draft6},
	"unevaluatedProperties": {shape: oneSchema, how: inAny, since: draft2019}, "unevaluatedItems": {shape: oneSchema, how: inAny, since: draft2019},
	"items": {shape: schemaOrList, how: inItem}, "prefixItems": {shape: manySchemas, how: inItem, since: draft2020},
	"additionalItems": {shape: oneSchema, how: inItem, until: draft2019}, "contains": {shape: oneSchema, how: inAny, since: draft6},
	"contentSchema": {shape: oneSchema, since: draft2019},

	"type": {shape: aType}, "enum": {shape: aList}, "const": {since: draft6},
	"multipleOf": {shape: aStep}, "minimum": {shape: aNumber}, "maximum": {shape: aNumber},
	"exclusiveMinimum": {shape: aLimit}, "exclusiveMaximum": {shape: aLimit},
	"minLength": {shape: aCount}, "maxLength": {shape: aCount}, "pattern": {shape: aPattern}, "format": {shape: aFormat},
	"minItems": {shape: aCount}, "maxItems": {shape: aCount}, "uniqueItems": {shape: aFlag},
	"minContains": {shape: aCount, since: draft2019}, "maxContains": {shape: aCount, since: draft2019},
	"minProperties": {shape: aCount}, "maxProperties": {shape: aCount}, "required": {shape: nameList},
	"dependentRequired": {shape: namedNames, since: draft2019},

	"title": {shape: aText}, "description": {shape: aText}, "default": {}, "examples": {shape: aList}, "deprecated": {shape: aFlag},
	"readOnly": {shape: aFlag}, "writeOnly": {shape: aFlag},
	"contentEncoding": {shape: aText}, "contentMediaType": {shape: aText},
}

// lookup returns the keyword of the given name in a dialect.
func (d dialect) lookup(name string) (keyword, bool) {
	k, ok := keywords[name]
	if !ok || d < k.since || k.until != 0 && d > k.until {
		return keyword{}, false
	}
	return k, true
}
