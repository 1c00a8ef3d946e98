package lockfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/safetext"
)

// The limits of an entry. A model could not read anything larger.
const (
	maxEntry  = 1 << 20 // bytes
	maxDepth  = 64      // open objects and arrays
	maxTokens = 50_000  // structural characters
	maxName   = 1 << 10 // bytes
)

// maxToolSize bounds the size of a tool in a lock file, in bytes. With one item per line, a few
// bytes in a listing can take many, and a reviewer would skip them.
const maxToolSize = 256 << 10

// Tool is the definition of an upstream's tool. The zero Tool is no tool.
type Tool struct {
	upstream, name, definition string

	sum  [sha256.Size]byte // of the definition
	size int               // size in a lock file, without the raw line

	hides bool // the definition holds invisible characters
	raw   bool // accepted with them unescaped
}

func (t Tool) Upstream() string { return t.upstream }

func (t Tool) Name() string { return t.name }

func (t Tool) Definition() json.RawMessage { return json.RawMessage(t.definition) }

// Hash returns the SHA-256 of the canonical definition, in 64 lower-case hexadecimal digits.
func (t Tool) Hash() string { return hex.EncodeToString(t.sum[:]) }

// EncodedSize returns the size of the tool in a lock file, in bytes.
func (t Tool) EncodedSize() int {
	if t.raw {
		return t.size + len(rawLine)
	}
	return t.size
}

// Hides reports whether the definition holds invisible characters ([safetext.Hides]). Such a
// tool is never accepted automatically. It is served with these characters escaped, unless it
// is [Tool.Raw].
func (t Tool) Hides() bool { return t.hides }

// Raw reports whether the tool was accepted with its invisible characters unescaped.
func (t Tool) Raw() bool { return t.raw }

// AsRaw returns the tool accepted with its invisible characters unescaped. Without such
// characters it returns t.
func (t Tool) AsRaw() Tool {
	t.raw = t.hides
	return t
}

// Equal reports whether two tools have the same upstream and definition. It ignores Raw.
func (t Tool) Equal(other Tool) bool {
	t.raw = other.raw
	return t == other
}

// byName orders the tools of one upstream by name and then by definition.
func byName(a, b Tool) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.definition, b.definition))
}

// ParseTool returns the tool in an entry of an upstream's tools/list. upstream is the name of
// its block, in valid UTF-8. The error says why the entry is rejected:
//
// - it is longer than 1 MiB, deeper than 64, or has more than 50,000 structural characters
// - it is not unambiguous JSON (see [jsonguard.Check]; half of a surrogate pair is rejected)
// - its name does not have 1 to 1,024 bytes
// - a member of the definition has the wrong type, or a name that differs only in case
// - it would take more than 256 KiB of a lock file
//
// Such a tool cannot be pinned, and must not be served.
func ParseTool(upstream string, entry json.RawMessage) (Tool, error) {
	if err := jsonguard.Check(entry, jsonguard.Limits{Bytes: maxEntry, Depth: maxDepth, Tokens: maxTokens}); err != nil {
		return Tool{}, fmt.Errorf("read definition: %w", err)
	}
	value, err := decode(entry)
	if err != nil {
		return Tool{}, fmt.Errorf("read definition: %w", err)
	}
	t, err := newTool(upstream, value, maxToolSize)
	if err == nil && t.size > maxToolSize {
		err = fmt.Errorf("it would take more than %d KiB of mcpd.lock", maxToolSize>>10)
	}
	if err != nil {
		return Tool{}, fmt.Errorf("read definition: %w", err)
	}
	return t, nil
}

// definitionMembers are the members of a definition, each with its type.
var definitionMembers = map[string]memberKind{
	"name": textMember, "title": textMember, "description": textMember,
	"inputSchema": objectMember, "outputSchema": objectMember, "annotations": objectMember,
}

// memberKind is the type of a member.
type memberKind string

const (
	textMember   memberKind = "a string"
	objectMember memberKind = "an object"
)

func (k memberKind) matches(value any) bool {
	switch value.(type) {
	case string:
		return k == textMember
	case map[string]any:
		return k == objectMember
	}
	return false
}

// newTool returns the tool of a decoded entry. Its size is exact up to limit.
func newTool(upstream string, value any, limit int) (Tool, error) {
	entry, ok := value.(map[string]any)
	if !ok {
		return Tool{}, errors.New("it is not an object")
	}
	definition := map[string]any{}
	for _, member := range sortedNames(entry) {
		name, known := memberOf(member)
		switch value := entry[member]; {
		case !known:
		case member != name:
			return Tool{}, fmt.Errorf("a member name differs from %s only in case", name)
		case value == nil:
		case !definitionMembers[name].matches(value):
			return Tool{}, fmt.Errorf("the %s is not %s", name, definitionMembers[name])
		default:
			definition[name] = value
		}
	}
	name, _ := definition["name"].(string)
	if name == "" || len(name) > maxName {
		return Tool{}, fmt.Errorf("it has no name of 1 to %d bytes", maxName)
	}
	canonical := appendValue(nil, definition)
	t := Tool{upstream: upstream, name: name, definition: string(canonical), sum: sha256.Sum256(canonical), hides: safetext.HidesIn(definition)}
	p := prettyPrinter{text: make([]byte, 0, 2*min(len(canonical), limit)), limit: limit}
	p.value(definition, 0)
	t.size = len(t.heading()) + len(p.text) + len("\n")
	return t, nil
}

// memberOf returns the member of a definition that a decoder may mistake a name for.
func memberOf(member string) (name string, ok bool) {
	if _, ok := definitionMembers[member]; ok {
		return member, true
	}
	for name := range definitionMembers {
		if strings.EqualFold(name, member) {
			return name, true
		}
	}
	return "", false
}
