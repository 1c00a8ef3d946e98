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

// The bounds of an entry. What is beyond is no tool: a model could not read it.
const (
	maxEntry  = 1 << 20 // bytes
	maxDepth  = 64      // objects and arrays that are open at once
	maxTokens = 50_000  // structural characters
	maxName   = 1 << 10 // bytes
)

// maxBlock is how much of a lock file a tool may take, in bytes: what is listed in a few
// bytes can take many there, where each item has a line, and nobody would review it.
const maxToolSize = 256 << 10

// Tool is the definition of a tool of an upstream. The zero Tool is none.
type Tool struct {
	upstream, name, definition string

	sum  [sha256.Size]byte // of the definition
	size int               // of the block, without a line for raw

	hides bool // the definition holds invisible characters
	raw   bool // these are served as they are
}

func (t Tool) Upstream() string { return t.upstream }

func (t Tool) Name() string { return t.name }

func (t Tool) Definition() json.RawMessage { return json.RawMessage(t.definition) }

// Hash returns the SHA-256 of the definition in its canonical form, in 64 lower-case
// hexadecimal digits.
func (t Tool) Hash() string { return hex.EncodeToString(t.sum[:]) }

// Len returns how much of a lock file the tool takes, in bytes.
func (t Tool) EncodedSize() int {
	if t.raw {
		return t.size + len(rawLine)
	}
	return t.size
}

// Hides reports whether the definition holds invisible characters ([safetext.Hides]). Such a
// tool is never taken in without a question, and is served with these escaped, unless it is
// [Tool.Raw].
func (t Tool) Hides() bool { return t.hides }

// Raw reports whether the tool was accepted with its invisible characters as they are.
func (t Tool) Raw() bool { return t.raw }

// AsRaw returns the tool as one that is accepted with its invisible characters as they are;
// it is the same tool where there are none.
func (t Tool) AsRaw() Tool {
	t.raw = t.hides
	return t
}

// Equal reports whether two tools are the same, with the same definition. How they were
// accepted does not matter.
func (t Tool) Equal(other Tool) bool {
	t.raw = other.raw
	return t == other
}

// byName orders tools of one upstream, and definitions of one name.
func byName(a, b Tool) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.definition, b.definition))
}

// Of returns the tool that an entry of an upstream's tools/list defines; upstream is the
// name of its block, which is valid UTF-8. The error says why the entry defines none: it is
// longer than 1 MiB, deeper than 64, has more than 50,000 structural characters, or is not
// JSON of one reading (see [jsonguard.Check]; a string with half of a surrogate pair is none),
// it has no name of 1 to 1,024 bytes, a member of the definition has not its type, or is
// named like one but for case, which some decoders take for it, or it would take more than
// 256 KiB of a lock file. Such a tool cannot be pinned, and must not be served.
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

// parts are the members of a definition, each with what it holds.
var definitionMembers = map[string]memberKind{
	"name": textMember, "title": textMember, "description": textMember,
	"inputSchema": objectMember, "outputSchema": objectMember, "annotations": objectMember,
}

// part is what a member of a definition holds.
type memberKind string

const (
	textMember   memberKind = "text"
	objectMember memberKind = "object"
)

func (p memberKind) matches(value any) bool {
	switch value.(type) {
	case string:
		return p == textMember
	case map[string]any:
		return p == objectMember
	}
	return false
}

// define returns the tool that a decoded entry defines. Its size is known up to most; that
// of a larger one is anything beyond.
func newTool(upstream string, value any, limit int) (Tool, error) {
	entry, ok := value.(map[string]any)
	if !ok {
		return Tool{}, errors.New("it is no object")
	}
	definition := map[string]any{}
	for _, member := range sortedNames(entry) {
		name, is := memberOf(member)
		switch value := entry[member]; {
		case !is:
		case member != name:
			return Tool{}, fmt.Errorf("a member is named like the %s but for case", name)
		case value == nil:
		case !definitionMembers[name].matches(value):
			return Tool{}, fmt.Errorf("the %s is no %s", name, definitionMembers[name])
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
	s := prettyPrinter{text: make([]byte, 0, 2*min(len(canonical), limit)), limit: limit}
	s.value(definition, 0)
	t.size = len(t.heading()) + len(s.text) + len("\n")
	return t, nil
}

// partOf returns the part of a definition that a decoder may take a member for.
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
