package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
)

// upstreamVariable names the servers behind this one by their URLs, with commas between
// them.
const upstreamVariable = "MCP_SERVERS"

// upstreamFlags are the flags of the verbs that reach the servers behind this one.
type upstreamFlags struct{ named []string }

func (f *upstreamFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.named, "upstream", nil, "offer what the MCP server `NAME=URL` offers, too (also "+upstreamVariable+", a list of URLs)")
}

// servers returns the upstreams that the command line and the environment name.
func (f *upstreamFlags) servers(e env) ([]engine.Upstream, error) {
	var all []engine.Upstream
	taken := map[string]bool{}
	add := func(name, address, origin string) error {
		u, err := engine.NewUpstream(name, address, origin)
		if err != nil {
			return usage("%v", err)
		}
		if taken[name] {
			return usage("%s: there is a second upstream %q", origin, name)
		}
		taken[name], all = true, append(all, u)
		return nil
	}
	for _, flag := range f.named {
		name, address, ok := strings.Cut(flag, "=")
		if !ok || name == "" || address == "" {
			return nil, usage("--upstream takes NAME=URL, like docs=https://mcp.example.com/mcp")
		}
		if err := add(name, address, "--upstream "+name); err != nil {
			return nil, err
		}
	}
	list, _ := e.lookup(upstreamVariable)
	for address := range strings.SplitSeq(list, ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		name := hostName(address)
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", hostName(address), n)
		}
		if err := add(name, address, upstreamVariable); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// hostName returns what a server is called by its URL: the first part of its host's name.
func hostName(address string) string {
	at, err := url.Parse(address)
	if err != nil {
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

// upstreamRow says how an upstream server is.
type upstreamRow struct {
	Name     string     `json:"name"`
	Up       bool       `json:"up"`
	Error    string     `json:"error,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Again    *time.Time `json:"again,omitempty"`
	Revision string     `json:"revision,omitempty"`
	Offered  int        `json:"offered"`
	LeftOut  []string   `json:"left_out"`
}

func upstreamRows(all []engine.UpstreamStatus) []upstreamRow {
	rows := make([]upstreamRow, len(all))
	for i, u := range all {
		rows[i] = upstreamRow{Name: u.Name, Up: u.Up, Since: known(u.Since), Again: known(u.Again), Revision: u.Revision, Offered: u.Offered, LeftOut: append([]string{}, u.LeftOut...)}
		if u.Err != nil {
			rows[i].Error = u.Err.Error()
		}
	}
	return rows
}

// printUnreached says which upstream servers a verb does without.
func printUnreached(e env, s engine.Status) {
	for _, u := range upstreamRows(s.Upstreams) {
		if u.Error != "" {
			fmt.Fprintf(e.stderr, "mcpd: the upstream %s cannot be reached: %s\n", printable(u.Name), printable(u.Error))
		}
	}
}

// known returns a time, nil of none.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// text says how the server is, for people.
func (u *upstreamRow) text() string {
	switch {
	case u.Up && len(u.LeftOut) > 0:
		return fmt.Sprintf("%s: lists %s, of which %d are left out; speaks %s", u.Name, count(u.Offered, "thing"), len(u.LeftOut), u.Revision)
	case u.Up:
		return fmt.Sprintf("%s: lists %s; speaks %s", u.Name, count(u.Offered, "thing"), u.Revision)
	case u.Error == "":
		return u.Name + ": is being reached"
	}
	return fmt.Sprintf("%s: not reached since %s: %s", u.Name, u.Since.Format(time.RFC3339), u.Error)
}
