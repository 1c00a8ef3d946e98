package schema

// A format is a value of the keyword format that is asserted.
type format struct {
	name string
	// words say what a string must be.
	words string
	valid func(string) bool
	// cost is how many steps it takes for each byte, beyond what goes without saying.
	cost int
}

// formats are those of draft 2020-12 validation section 7.3.
var formats = formatsByName([]*format{
	{name: "date", words: "a date, like 2026-07-28", valid: isDate},
	{name: "time", words: "a time with its offset, like 14:30:00Z", valid: isTime},
	{name: "date-time", words: "a date and time with its offset, like 2026-07-28T14:30:00Z", valid: isDateTime},
	{name: "duration", words: "a duration, like P3DT4H", valid: isDuration},
	{name: "email", words: "an email address, like name@example.com", valid: isEmail},
	{name: "idn-email", words: "an email address, like name@example.com", valid: isIDNEmail},
	{name: "hostname", words: "a host name, like api.example.com", valid: isHostname},
	{name: "idn-hostname", words: "a host name, like api.example.com", valid: isIDNHostname},
	{name: "ipv4", words: "an IPv4 address, like 192.0.2.1", valid: isIPv4},
	{name: "ipv6", words: "an IPv6 address, like 2001:db8::1", valid: isIPv6},
	{name: "uri", words: "a URI, like https://example.com/path", valid: isURI},
	{name: "uri-reference", words: "a URI or a relative reference, like /path?query", valid: isURIReference},
	{name: "iri", words: "an IRI, like https://example.com/path", valid: isIRI},
	{name: "iri-reference", words: "an IRI or a relative reference, like /path?query", valid: isIRIReference},
	{name: "uri-template", words: "a URI template, like /orders/{id}", valid: isURITemplate},
	{name: "uuid", words: "a UUID, like 123e4567-e89b-12d3-a456-426614174000", valid: isUUID},
	{name: "regex", words: "a regular expression (RE2, at most 4096 bytes)", valid: isPattern, cost: 5},
	{name: "json-pointer", words: "a JSON pointer, like /items/0", valid: isPointer},
	{name: "relative-json-pointer", words: "a relative JSON pointer, like 1/name", valid: isRelativePointer},
})

// annotations are formats of other dialects that say nothing to assert; they
// are passed over without a word.
var annotations = map[string]bool{
	"int8": true, "int16": true, "int32": true, "int64": true, "uint": true, "uint8": true, "uint16": true, "uint32": true, "uint64": true,
	"float": true, "double": true, "decimal": true, "byte": true, "binary": true, "password": true, "markdown": true, "html": true, "color": true,
}

func formatsByName(list []*format) map[string]*format {
	m := map[string]*format{}
	for _, f := range list {
		m[f.name] = f
	}
	return m
}

func formatNames() []string { return sortedNames(formats) }
