package overlay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// The limits of one server's offers. Each read tries all templates. For each tool and prompt
// the matching policies are compiled, and a catalog limits their number.
const (
	maxTemplates = 256
	maxTools     = 2000
	maxPrompts   = 2000
)

// maxWarnings bounds the warnings about one server.
const maxWarnings = 20

// includedTools returns the tools of a list that a block includes: up to maxTools, and the
// excess. Entries that are not objects are included, so that they are reported.
func includedTools(u *definition.Upstream, list []json.RawMessage) (tools, more []json.RawMessage) {
	for _, entry := range list {
		var object jsonObject
		if json.Unmarshal(entry, &object) != nil || u.Includes(object.text("name")) {
			tools = append(tools, entry)
		}
	}
	n := min(len(tools), maxTools)
	return tools[:n:n], tools[n:]
}

// limit returns the first entries of a list, and excludes the excess.
func (b *itemBuilder) limit(kind catalog.Kind, list []json.RawMessage, n int) []json.RawMessage {
	kept := min(len(list), n)
	b.excludeExcess(kind, list[kept:], n)
	return list[:kept]
}

// excludeExcess excludes entries beyond the limit, with one warning for all of them.
func (b *itemBuilder) excludeExcess(kind catalog.Kind, more []json.RawMessage, limit int) {
	if len(more) == 0 {
		return
	}
	b.warn("left-out", fmt.Sprintf("%d %ss are left out: the limit is %d", len(more), kind, limit))
	why := fmt.Sprintf("an upstream can offer at most %d", limit)
	for _, entry := range more {
		b.addExclusion(kind, decoded(b.redactor.RedactJSON(entry)).displayName(kind), why)
	}
}

// exclude excludes an entry and warns of it. name is the server's name for it.
func (b *itemBuilder) exclude(kind catalog.Kind, name, why string) {
	b.warn("left-out", fmt.Sprintf("the %s %.*q is left out: %s", kind, maxNameLen, name, why))
	b.addExclusion(kind, name, why)
}

// addExclusion records an excluded entry without a warning. The result is valid until the next
// call.
func (b *itemBuilder) addExclusion(kind catalog.Kind, name, why string) *catalog.LeftOut {
	if kind == catalog.Tools || kind == catalog.Prompts {
		name = b.upstream.LocalName(name)
	}
	b.excluded = append(b.excluded, catalog.NewLeftOut(kind, name, b.upstream.Name, why))
	return &b.excluded[len(b.excluded)-1]
}

func (b *itemBuilder) warn(code, what string) {
	if len(b.diagnostics) == maxWarnings {
		b.suppressed++
		return
	}
	b.diagnostics = append(b.diagnostics, b.newWarning(code, what))
}

func (b *itemBuilder) newWarning(code, what string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Code: code, Range: b.upstream.NameRange, Summary: fmt.Sprintf("upstream %q: %s", b.upstream.Name, what),
	}
}

// maxNameLen bounds a name in a warning, in bytes.
const maxNameLen = 128

// decodeValue decodes JSON of bounded depth. Numbers stay as they are written.
func decodeValue(raw json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&v) // other checks reject what cannot be decoded
	return v
}

// hidesTool reports whether the entry of a tool holds invisible characters where callers see
// them. In an entry that cannot be pinned any member counts.
func hidesTool(upstream string, entry json.RawMessage) bool {
	if t, err := lockfile.ParseTool(upstream, entry); err == nil {
		return t.Hides()
	}
	return safetext.HidesIn(decodeValue(entry))
}

// splitHidden splits tools into open ones, which are served without a pin, and hiding ones,
// which have to be accepted: entries with invisible characters, and all other entries with the
// same name.
func (b *itemBuilder) splitHidden(entries []json.RawMessage) (open, hiding []json.RawMessage) {
	names := map[string]bool{}
	for _, entry := range entries {
		if hidesTool(b.upstream.Name, b.redactor.RedactJSON(entry)) {
			names[decoded(entry).text("name")] = true
		}
	}
	if len(names) == 0 {
		return entries, nil
	}
	for _, entry := range entries {
		if names[decoded(entry).text("name")] {
			hiding = append(hiding, entry)
		} else {
			open = append(open, entry)
		}
	}
	return open, hiding
}

// visibleMembers are the members of resources, templates and prompts that callers see in
// addition to the address.
var visibleMembers = []string{"name", "title", "description", "mimeType", "annotations", "arguments"}

// The reasons to exclude entries with invisible characters.
var (
	errHiddenURI      = errors.New("its URI contains invisible characters")
	errHiddenArgument = errors.New("an argument name contains invisible characters")
	errHidden         = errors.New("it contains invisible characters; escape = [\"…\"] in the upstream block offers it with these as escapes")
)

// visible returns the entry as callers see it. Invisible characters are escaped, unless the
// tool was accepted raw.
func (b *itemBuilder) visible(kind catalog.Kind, object jsonObject) (jsonObject, error) {
	if kind == catalog.Tools {
		if accepted, pinned := b.accepted[object.text("name")]; pinned && accepted.Hides() && !accepted.Raw() {
			return escapeHidden(object, "name")
		}
		return object, nil
	}
	hides := false
	for _, name := range visibleMembers {
		hides = hides || object[name] != nil && safetext.HidesIn(decodeValue(object[name]))
	}
	if !hides {
		return object, nil
	}
	if !b.upstream.Escapes(object.address(kind)) {
		return nil, errHidden
	}
	if kind == catalog.Prompts {
		if hidesArgument(object) {
			return nil, errHiddenArgument
		}
		return escapeHidden(object, "name")
	}
	return escapeHidden(object, "uri", "uriTemplate")
}

func hidesArgument(object jsonObject) bool {
	var arguments []jsonObject
	_ = json.Unmarshal(object["arguments"], &arguments)
	return slices.ContainsFunc(arguments, func(a jsonObject) bool { return safetext.Hides(a.text("name")) })
}

// escapeHidden returns an entry with invisible characters escaped, except in the named members,
// which address the entry at the server.
func escapeHidden(object jsonObject, except ...string) (jsonObject, error) {
	shown := make(jsonObject, len(object))
	for name, raw := range object {
		v, err := safetext.EscapeIn(decodeValue(raw))
		if err != nil {
			return nil, err
		}
		if shown[name], err = jsontext.Marshal(v); err != nil {
			return nil, fmt.Errorf("escape %s: %w", name, err)
		}
	}
	for _, name := range except {
		if raw, ok := object[name]; ok {
			shown[name] = raw
		}
	}
	return shown, nil
}

// instructions is the pattern in escape for the instructions of a server.
const instructions = "instructions"

// labeledInstructions returns the instructions of a server for models, after its name, or "". Instructions
// with invisible characters are excluded unless the block escapes them.
func (b *itemBuilder) labeledInstructions(text string) string {
	switch {
	case !b.upstream.Instructions || text == "":
		return ""
	case safetext.Hides(text) && !b.upstream.Escapes(instructions):
		b.warn("left-out", fmt.Sprintf("its instructions are left out: they contain invisible characters; escape = [%q] in the upstream block adds them with these as escapes", instructions))
		return ""
	}
	return safetext.Prompt("["+b.upstream.Name+"] ", text, maxMessage)
}
