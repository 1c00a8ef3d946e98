package overlay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// value decodes JSON of bounded depth, with numbers as they are written.
func value(raw json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&v) // what cannot be decoded is refused elsewhere
	return v
}

// hidesTool reports whether the entry of a tool holds invisible characters in what callers
// see of it. Of an entry that cannot be pinned that is anything.
func hidesTool(upstream string, entry json.RawMessage) bool {
	if t, err := lockfile.Of(upstream, entry); err == nil {
		return t.Hides()
	}
	return safetext.HidesIn(value(entry))
}

// apart returns the entries of tools that are served without a pin, and those that have to
// be accepted: entries with invisible characters, and whatever else has the name of one.
func (m *maker) apart(entries []json.RawMessage) (open, hiding []json.RawMessage) {
	names := map[string]bool{}
	for _, entry := range entries {
		if hidesTool(m.block.Name, m.veil.RedactJSON(entry)) {
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

// shownMembers are the members of entries of resources, templates and prompts that callers
// see beside their addresses.
var shownMembers = []string{"name", "title", "description", "mimeType", "annotations", "arguments"}

// The reasons for which something with invisible characters is left out.
var (
	errHidesAddress  = errors.New("its URI holds invisible characters")
	errHidesArgument = errors.New("the name of an argument of it holds invisible characters")
	errHides         = errors.New("it holds invisible characters; escape = [\"…\"] in the upstream block offers it with these as escapes")
)

// shown returns what callers see of an entry: invisible characters are escapes, unless the
// tool was accepted raw.
func (m *maker) shown(kind catalog.Kind, said members) (members, error) {
	if kind == catalog.Tools {
		if held, pinned := m.held[said.text("name")]; pinned && held.Hides() && !held.Raw() {
			return escaped(said, "name")
		}
		return said, nil
	}
	hides := false
	for _, name := range shownMembers {
		hides = hides || said[name] != nil && safetext.HidesIn(value(said[name]))
	}
	if !hides {
		return said, nil
	}
	if !m.block.Escapes(said.address(kind)) {
		return nil, errHides
	}
	if kind == catalog.Prompts {
		if hidesArgument(said) {
			return nil, errHidesArgument
		}
		return escaped(said, "name")
	}
	return escaped(said, "uri", "uriTemplate")
}

// hidesArgument reports whether a prompt has an argument that nobody could name.
func hidesArgument(said members) bool {
	var arguments []members
	_ = json.Unmarshal(said["arguments"], &arguments)
	for _, a := range arguments {
		if safetext.Hides(a.text("name")) {
			return true
		}
	}
	return false
}

// escaped returns an entry with invisible characters as escapes, but for members that the
// server is called by.
func escaped(said members, but ...string) (members, error) {
	shown := make(members, len(said))
	for name, raw := range said {
		v, err := safetext.EscapeIn(value(raw))
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return nil, fmt.Errorf("escape %s: %w", name, err)
		}
		shown[name] = b.Bytes()
	}
	for _, name := range but {
		if raw, given := said[name]; given {
			shown[name] = raw
		}
	}
	return shown, nil
}

// instructions is how a pattern of escape calls the instructions of a server.
const instructions = "instructions"

// instruct returns the instructions of a server for models, behind its name, "" for none.
// Those with invisible characters are left out, unless the block has them escaped.
func (m *maker) instruct(text string) string {
	switch {
	case !m.block.Instructions || text == "":
		return ""
	case safetext.Hides(text) && !m.block.Escapes(instructions):
		m.tell("left-out", fmt.Sprintf("its instructions are left out: they hold invisible characters; escape = [%q] in the upstream block adds them with these as escapes", instructions))
		return ""
	}
	return safetext.Prompt("["+m.block.Name+"] ", text, maxMessage)
}
