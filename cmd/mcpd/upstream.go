package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/control"
)

func upstreamStates(all []engine.UpstreamStatus) []control.UpstreamState {
	rows := make([]control.UpstreamState, len(all))
	for i, u := range all {
		rows[i] = control.UpstreamState{Name: u.Name, Up: u.Up, Idle: u.Idle, Since: known(u.Since), Again: known(u.NextAttempt), Revision: u.Revision, Offered: u.Offered, Excluded: u.NotServed, ExcludedItems: append([]string{}, u.LeftOut...), Quarantined: append([]string{}, u.Quarantined...)}
		if u.Err != nil {
			rows[i].Error = u.Err.Error()
		}
		if u.LockErr != nil {
			rows[i].LockError = u.LockErr.Error()
		}
	}
	return rows
}

// printUpstreams warns of upstream servers that are unreachable or not yet pinned.
func printUpstreams(e env, s engine.Status) {
	for _, u := range s.Upstreams {
		switch err := cmp.Or(u.Err, u.Late); {
		case err != nil:
			warnf(e, "upstream %s is unreachable: %v", u.Name, err)
		case u.LockErr != nil:
			warnf(e, "the tools of upstream %s are not pinned yet; start mcpd serve, or run mcpd lock accept", u.Name)
		}
	}
}

// warnf prints a warning on standard error.
func warnf(e env, format string, args ...any) {
	fmt.Fprintf(e.stderr, "mcpd: %s\n", sanitize(fmt.Sprintf(format, args...)))
}

// known returns a pointer to t, nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// upstreamText describes an upstream server in a line.
func upstreamText(u *control.UpstreamState) string {
	switch {
	case u.Up:
		return fmt.Sprintf("%s: lists %s%s; speaks %s%s", u.Name, count(u.Offered, "item"), excludedText(u), u.Revision, pinsText(u))
	case u.Idle:
		return u.Name + ": connects at the first call"
	case u.Error == "":
		return u.Name + ": connecting"
	}
	return fmt.Sprintf("%s: unreachable since %s: %s", u.Name, u.Since.Format(time.RFC3339), u.Error)
}

// excludedText describes the items that are not served.
func excludedText(u *control.UpstreamState) string {
	switch left, quarantined := u.Excluded, len(u.Quarantined); {
	case left == 0:
		return ""
	case quarantined == 0:
		return fmt.Sprintf(", %d excluded", left)
	case quarantined == left:
		return fmt.Sprintf(", %d quarantined (mcpd lock diff %s)", quarantined, u.Name)
	default:
		return fmt.Sprintf(", %d excluded, %d of these quarantined (mcpd lock diff %s)", left, quarantined, u.Name)
	}
}

// pinsText reports accepted tools that are only in memory.
func pinsText(u *control.UpstreamState) string {
	if u.LockError == "" {
		return ""
	}
	return "; pinned in memory only: " + u.LockError
}

// upstreamVariable is the environment variable with upstream servers, separated by
// commas: URL, NAME=URL, or =URL for a server without a prefix for its tools and
// prompts.
const upstreamVariable = "MCP_SERVERS"

// upstreamFlags holds the flags of verbs that connect to upstream servers.
type upstreamFlags struct{ named []string }

func (f *upstreamFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.named, "upstream", nil, "add the upstream MCP server `NAME=URL` (also "+upstreamVariable+", a list)")
}

func (f *upstreamFlags) servers(e env) ([]engine.Upstream, error) {
	var all []engine.Upstream
	taken := map[string]bool{}
	for _, flag := range f.named {
		name, address, ok := strings.Cut(flag, "=")
		if !ok || name == "" || address == "" {
			return nil, usageError("--upstream takes NAME=URL, such as docs=https://mcp.example.com/mcp")
		}
		u, err := engine.NewUpstream(name, address, "--upstream "+name)
		if err != nil {
			return nil, usageError("%v", err)
		}
		if taken[name] {
			return nil, usageError("--upstream %s: duplicate upstream %q", name, name)
		}
		taken[name], all = true, append(all, u)
	}
	list, _ := e.vars.lookup(upstreamVariable)
	entries := entriesOf(list)
	for _, entry := range entries {
		if entry.name != "" && taken[entry.name] {
			return nil, usageError("%s: duplicate upstream %q", upstreamVariable, entry.name)
		}
		taken[entry.name] = true
	}
	for _, entry := range entries {
		u, err := entry.upstream(taken)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// listEntry is an entry of the list.
type listEntry struct {
	name, address string // name is empty if the host supplies it
	bare          bool   // its tools and prompts get no prefix
}

// entriesOf parses the list of [upstreamVariable].
func entriesOf(list string) (entries []listEntry) {
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		entry := listEntry{address: text}
		if name, address, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(name, ":/?#@") {
			entry = listEntry{strings.TrimSpace(name), strings.TrimSpace(address), strings.TrimSpace(name) == ""}
		}
		entries = append(entries, entry)
	}
	return entries
}

// upstream returns the server. If it has no name, it gets one that is not taken.
func (entry listEntry) upstream(taken map[string]bool) (engine.Upstream, error) {
	name := entry.name
	if name == "" {
		name = hostName(entry.address)
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", hostName(entry.address), n)
		}
		taken[name] = true
	}
	u, err := engine.NewUpstream(name, entry.address, upstreamVariable)
	if err != nil {
		return u, usageError("%s: %q: %v", upstreamVariable, shownAddress(entry.address), errors.Unwrap(err)) // without the name, which may be part of a secret
	}
	if entry.bare {
		return u.WithoutPrefix(), nil
	}
	return u, nil
}

// hostName returns the name of a server by its URL: the first label of the host. It is
// "upstream" for an IP address, because code cannot use a name that starts with a
// digit.
func hostName(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return "upstream"
	}
	if _, err := netip.ParseAddr(at.Hostname()); err == nil {
		return "upstream"
	}
	first, _, _ := strings.Cut(at.Hostname(), ".")
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, first)
	if name == "" {
		return "upstream"
	}
	return name
}

// shownAddress returns the scheme and the host of what should be a URL. Everything else
// may be a credential.
func shownAddress(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok || strings.ContainsAny(scheme, ":@/?#") {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	left := ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest, left = rest[:end], "…"
	}
	host, port, _ := strings.Cut(rest, ":")
	if !strings.HasPrefix(rest, "[") && strings.Trim(port, "0123456789") != "" { // a password with a comma in it
		rest, left = host, "…"
	}
	return scheme + rest + left
}
