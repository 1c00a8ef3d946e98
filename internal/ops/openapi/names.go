package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Lengths of generated names. A tool name has at most 64 characters.
const (
	maxTool       = 64
	maxIdentifier = 60
)

// snake returns text as a name of lower-case words: GetPetById is get_pet_by_id.
func snake(text string) string {
	var b strings.Builder
	runes := []rune(text[:min(len(text), 1000)])
	for i, r := range runes {
		switch {
		case r >= 'A' && r <= 'Z':
			start := i > 0 && (isLower(runes[i-1]) || i+1 < len(runes) && isLower(runes[i+1]) && isUpper(runes[i-1]))
			if start {
				b.WriteByte('_')
			}
			b.WriteRune(unicode.ToLower(r))
		case isLower(r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return strings.Trim(underscores.ReplaceAllString(b.String(), "_"), "_")
}

func isLower(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
func isUpper(r rune) bool { return r >= 'A' && r <= 'Z' }

var (
	underscores = regexp.MustCompile(`_+`)
	word        = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// short returns name with at most limit characters. A name that is cut ends in a part of its hash.
func short(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return strings.TrimRight(name[:limit-7], "_") + "_" + hashOf(name)
}

// hashOf returns six hex digits.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:3])
}

// inherited are names that every object of JavaScript has.
var inherited = []string{"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"}

// identifier returns the name of an input for a name of the document. It is a word of HCL and
// JavaScript, and unique in taken.
func identifier(name, suffix string, taken map[string]bool) string {
	base := strings.Map(func(r rune) rune {
		if r == '_' || isLower(r) || isUpper(r) {
			return r
		}
		return '_'
	}, name[:min(len(name), 200)])
	base = strings.Trim(underscores.ReplaceAllString(base, "_"), "_")
	if base == "" {
		base = "value"
	}
	if base[0] >= '0' && base[0] <= '9' {
		base = "n" + base
	}
	base = short(base, maxIdentifier)
	if slices.Contains(inherited, base) {
		base += "_value"
	}
	free := base
	if taken[free] {
		free = base + "_" + suffix
	}
	if taken[free] {
		free = base + "_" + hashOf(name+" "+suffix)
	}
	taken[free] = true
	return free
}

// toolNames gives each operation a name. Names of an earlier import stay.
func toolNames(keys, wanted []string, prefix string, earlier map[string]EarlierTool) []string {
	names := make([]string, len(keys))
	taken := map[string]bool{}
	for _, tool := range earlier {
		taken[tool.Name] = true
	}
	for i, key := range keys {
		if names[i] = earlier[key].Name; names[i] != "" {
			continue
		}
		base := snake(wanted[i])
		if base == "" {
			base = snake(key)
		}
		if base[0] >= '0' && base[0] <= '9' {
			base = "op_" + base
		}
		name := short(prefix+base, maxTool)
		if taken[name] {
			name = short(prefix+base, maxTool-7) + "_" + hashOf(key)
		}
		names[i], taken[name] = name, true
	}
	return names
}

// ImportName returns the name of an import for its source, such as a file name or a host.
func ImportName(source string) string { return short(snake(source), 40) }
