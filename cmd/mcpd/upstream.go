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
)

// upstreamRow says how an upstream server is.
type upstreamRow struct {
	Name     string     `json:"name"`
	Up       bool       `json:"up"`
	Idle     bool       `json:"idle,omitempty"`
	Error    string     `json:"error,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Again    *time.Time `json:"again,omitempty"`
	Revision string     `json:"revision,omitempty"`
	Offered  int        `json:"offered"`
	Left     int        `json:"left"`
	LeftOut  []string   `json:"left_out"`
	// Quarantined are tools that nobody has accepted as they are.
	Quarantined []string `json:"quarantined"`
	// Unkept is why the lock file does not have what was taken in of it.
	Unkept string `json:"unkept,omitempty"`
}

func upstreamRows(all []engine.UpstreamStatus) []upstreamRow {
	rows := make([]upstreamRow, len(all))
	for i, u := range all {
		rows[i] = upstreamRow{Name: u.Name, Up: u.Up, Idle: u.Idle, Since: known(u.Since), Again: known(u.Again), Revision: u.Revision, Offered: u.Offered, Left: u.Left, LeftOut: append([]string{}, u.LeftOut...), Quarantined: append([]string{}, u.Quarantined...)}
		if u.Err != nil {
			rows[i].Error = u.Err.Error()
		}
		if u.Unkept != nil {
			rows[i].Unkept = u.Unkept.Error()
		}
	}
	return rows
}

// printUpstreams says which upstream servers a verb does without, and whose tools nobody
// has looked at.
func printUpstreams(e env, s engine.Status) {
	for _, u := range s.Upstreams {
		switch err := cmp.Or(u.Err, u.Late); {
		case err != nil:
			tell(e, "the upstream %s cannot be reached: %v", u.Name, err)
		case u.Unkept != nil:
			tell(e, "the tools of the upstream %s are not pinned yet; mcpd serve does that, and mcpd lock accept", u.Name)
		}
	}
}

// tell says something on standard error that keeps a verb from nothing.
func tell(e env, format string, args ...any) {
	fmt.Fprintf(e.stderr, "mcpd: %s\n", printable(fmt.Sprintf(format, args...)))
}

// known returns a time, nil of none.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (u *upstreamRow) text() string {
	switch {
	case u.Up:
		return fmt.Sprintf("%s: lists %s%s; speaks %s%s", u.Name, count(u.Offered, "thing"), u.without(), u.Revision, u.pins())
	case u.Idle:
		return u.Name + ": is reached when it is called first"
	case u.Error == "":
		return u.Name + ": is being reached"
	}
	return fmt.Sprintf("%s: not reached since %s: %s", u.Name, u.Since.Format(time.RFC3339), u.Error)
}

// without says what of it is not offered here.
func (u *upstreamRow) without() string {
	switch left, quarantined := u.Left, len(u.Quarantined); {
	case left == 0:
		return ""
	case quarantined == 0:
		return fmt.Sprintf(", of which %s left out", are(left))
	case quarantined == left:
		return fmt.Sprintf(", of which %s in quarantine (mcpd lock diff %s)", are(quarantined), u.Name)
	default:
		return fmt.Sprintf(", of which %s left out, %d of these in quarantine (mcpd lock diff %s)", are(left), quarantined, u.Name)
	}
}

// are begins what is said of a number of things.
func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// pins says where it is kept what was taken in of it, if that is not the lock file.
func (u *upstreamRow) pins() string {
	if u.Unkept == "" {
		return ""
	}
	return "; is pinned in memory only: " + u.Unkept
}

// upstreamVariable names the servers behind this one, with commas between them: each as URL,
// as NAME=URL, or as =URL for one whose tools and prompts get no prefix.
const upstreamVariable = "MCP_SERVERS"

// upstreamFlags are the flags of the verbs that reach the servers behind this one.
type upstreamFlags struct{ named []string }

func (f *upstreamFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.named, "upstream", nil, "offer what the MCP server `NAME=URL` offers, too (also "+upstreamVariable+", a list)")
}

func (f *upstreamFlags) servers(e env) ([]engine.Upstream, error) {
	var all []engine.Upstream
	taken := map[string]bool{}
	for _, flag := range f.named {
		name, address, ok := strings.Cut(flag, "=")
		if !ok || name == "" || address == "" {
			return nil, usage("--upstream takes NAME=URL, like docs=https://mcp.example.com/mcp")
		}
		u, err := engine.NewUpstream(name, address, "--upstream "+name)
		if err != nil {
			return nil, usage("%v", err)
		}
		if taken[name] {
			return nil, usage("--upstream %s: there is a second upstream %q", name, name)
		}
		taken[name], all = true, append(all, u)
	}
	list, _ := e.vars.lookup(upstreamVariable)
	entries := entriesOf(list)
	for _, entry := range entries {
		if entry.name != "" && taken[entry.name] {
			return nil, usage("%s: there is a second upstream %q", upstreamVariable, entry.name)
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

// listEntry is a server that a list names.
type listEntry struct {
	name, address string // the name is "" where the host gives it
	bare          bool   // its tools and prompts get no prefix
}

// entriesOf reads the list of [upstreamVariable].
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

// upstream returns the server, and takes a name for it that is not taken if it has none.
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
		return u, usage("%s: %q: %v", upstreamVariable, shownAddress(entry.address), errors.Unwrap(err)) // without the name, which may be a part of a secret
	}
	if entry.bare {
		return u.WithoutPrefix(), nil
	}
	return u, nil
}

// hostName returns what a server is called by its URL: the first part of its host's name. An
// address has no name, and code could not call one that begins with a digit.
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

// shownAddress returns of what should be a URL the scheme and the host: whatever else is in
// it may be a credential.
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
	if !strings.HasPrefix(rest, "[") && strings.Trim(port, "0123456789") != "" { // a password whose rest is behind a comma
		rest, left = host, "…"
	}
	return scheme + rest + left
}
