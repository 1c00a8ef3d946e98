package main

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
)

// upstreamVariable names the servers behind this one, with commas between them: each as URL,
// as NAME=URL, or as =URL for one whose tools and prompts get no prefix.
const upstreamVariable = "MCP_SERVERS"

// upstreamFlags are the flags of the verbs that reach the servers behind this one.
type upstreamFlags struct{ named []string }

func (f *upstreamFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.named, "upstream", nil, "offer what the MCP server `NAME=URL` offers, too (also "+upstreamVariable+", a list)")
}

// servers returns the upstreams that the command line and the environment name.
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
	list, _ := e.lookup(upstreamVariable)
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
