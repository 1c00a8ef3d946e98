package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// toolListing holds the parsed tools of a listing.
type toolListing struct {
	tools   []lockfile.Tool
	entries []json.RawMessage // of tools, in the same order
	// rejected entries define no tool; reasons are the errors.
	rejected []json.RawMessage
	reasons  []error
}

// maxUpstreamBytes bounds the tools of one upstream in the lock file, in bytes, to leave room
// for others.
const maxUpstreamBytes = 8 << 20

// errUpstreamQuota rejects a tool that exceeds maxUpstreamBytes.
var errUpstreamQuota = fmt.Errorf("it cannot be accepted: the tools before it take %d MiB of mcpd.lock, the limit of one upstream", maxUpstreamBytes>>20)

// errSecretName rejects a tool that cannot be called without revealing a secret.
var errSecretName = errors.New("its name contains a secret")

// readTools parses redacted entries of tools/list: accepted definitions are written to a file.
func readTools(upstream string, entries []json.RawMessage, redactor redact.Redactor) (l toolListing) {
	room := maxUpstreamBytes
	for _, entry := range entries {
		object := decoded(entry)
		entry = redactor.RedactJSON(entry)
		if decoded(entry).text("name") != object.text("name") {
			l.rejected, l.reasons = append(l.rejected, entry), append(l.reasons, errSecretName)
		} else if needsTask(object) {
			l.rejected, l.reasons = append(l.rejected, entry), append(l.reasons, errTaskOnly)
		} else if t, err := lockfile.ParseTool(upstream, entry); err != nil {
			l.rejected, l.reasons = append(l.rejected, entry), append(l.reasons, fmt.Errorf("it cannot be accepted: %w", err))
		} else if t.EncodedSize() > room {
			l.rejected, l.reasons, room = append(l.rejected, entry), append(l.reasons, errUpstreamQuota), 0
		} else {
			room -= t.EncodedSize()
			l.tools, l.entries = append(l.tools, t), append(l.entries, definitionOf(entry, t))
		}
	}
	return l
}

// ambiguous returns the names that are listed with several definitions.
func (l toolListing) ambiguous() map[string]bool {
	definitions, names := map[string]lockfile.Tool{}, map[string]bool{}
	for _, t := range l.tools {
		if first, listed := definitions[t.Name()]; listed && first != t {
			names[t.Name()] = true
		}
		definitions[t.Name()] = t
	}
	return names
}

// definitionOf returns the pinned members of an entry as the server writes them. Members that
// are not pinned could change unnoticed, and are dropped.
func definitionOf(entry json.RawMessage, t lockfile.Tool) json.RawMessage {
	object, pinned := decoded(entry), decoded(t.Definition())
	for name := range object {
		if _, known := pinned[name]; !known {
			delete(object, name)
		}
	}
	// Decoded JSON always encodes.
	definition, _ := json.Marshal(object)
	return definition
}

// acceptedTools returns the entries of tools that may be served.
func (b *itemBuilder) acceptedTools(entries []json.RawMessage) (served []json.RawMessage) {
	mode := b.mode
	if !b.pinned {
		served, entries = b.splitHidden(entries)
		mode = lockfile.Strict
	}
	l := readTools(b.upstream.Name, entries, b.redactor)
	refused := map[string]bool{}
	for i, entry := range l.rejected {
		name := decoded(entry).text("name")
		refused[name] = true
		b.exclude(catalog.Tools, name, l.reasons[i].Error())
	}
	verdict := b.lock.Check(b.upstream.Name, l.tools, mode)
	b.accepted = make(map[string]lockfile.Tool, len(verdict.Served))
	for _, t := range verdict.Served {
		if !refused[t.Name()] { // it is unknown which of the two a call reaches
			b.accepted[t.Name()] = t
		}
	}
	for i, t := range l.tools {
		if accepted, ok := b.accepted[t.Name()]; ok && accepted.Equal(t) {
			served = append(served, l.entries[i])
		}
	}
	ambiguous := l.ambiguous()
	for _, c := range verdict.Changes {
		if c.Kind != lockfile.Removed {
			b.quarantined = append(b.quarantined, c)
			b.quarantine(c.Name, b.reason(c, ambiguous[c.Name]))
		}
	}
	b.firstUse, b.toPin = verdict.FirstUse, verdict.Served
	return served
}

func (b *itemBuilder) reason(c lockfile.Change, ambiguous bool) string {
	reason := "it is not accepted yet"
	switch {
	case !ambiguous && c.New.Hides():
		reason = "it contains invisible characters and is not accepted yet"
	case ambiguous:
		return "it is listed several times, with different definitions"
	case c.Kind == lockfile.Changed:
		reason = "its definition differs from the accepted one"
	}
	return fmt.Sprintf("%s: mcpd lock diff %s", reason, c.Upstream)
}

// acceptedListing holds the accepted tools of one listing, by name. It is immutable.
type acceptedListing struct {
	listing *upstream.Listing
	tools   map[string]lockfile.Tool
}

// acceptance checks calls against the accepted tools of an upstream. Items outlive the listing:
// a running script keeps the tools that were served when it started. The server may have
// changed since, so each call checks again.
type acceptance struct {
	// latest is the last checked listing, or nil.
	latest atomic.Pointer[acceptedListing]
}

// acceptCheck returns a function that reports whether a listing has a tool with its accepted
// definition, or nil if the tool is not pinned. For the latest listing the check is almost
// free; another listing is searched once.
func (b *itemBuilder) acceptCheck(name string) func(*upstream.Listing) bool {
	accepted, pinned := b.accepted[name]
	if !pinned {
		return nil
	}
	acc, redactor := b.acceptance, b.redactor
	var other atomic.Pointer[listingCheck]
	return func(now *upstream.Listing) bool {
		if v := acc.latest.Load(); v != nil && v.listing == now {
			if other.Load() != nil {
				other.Store(nil) // releases the listing
			}
			now, ok := v.tools[name]
			return ok && now.Equal(accepted)
		}
		f := other.Load()
		if f == nil || f.listing != now {
			f = &listingCheck{now, containsOnly(now, accepted, redactor)}
			other.Store(f)
		}
		return f.ok
	}
}

// listingCheck is the cached result for one listing.
type listingCheck struct {
	listing *upstream.Listing
	ok      bool
}

// containsOnly reports whether a listing has a tool and no other definition under its name.
func containsOnly(l *upstream.Listing, accepted lockfile.Tool, redactor redact.Redactor) bool {
	if l == nil {
		return false
	}
	entries := slices.DeleteFunc(slices.Clone(l.Tools), func(entry json.RawMessage) bool { return decoded(entry).text("name") != accepted.Name() })
	called := readTools(accepted.Upstream(), entries, redactor)
	return len(entries) > 0 && len(called.tools) == len(entries) && !slices.ContainsFunc(called.tools, func(t lockfile.Tool) bool { return !t.Equal(accepted) })
}

// quarantine excludes a tool with a definition that was not accepted.
func (b *itemBuilder) quarantine(name, why string) {
	b.warn(catalog.CodeQuarantined, fmt.Sprintf("the tool %.*q is left out: %s", maxNameLen, name, why))
	b.addExclusion(catalog.Tools, name, why).Quarantined = true
}
