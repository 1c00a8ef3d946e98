package main

import (
	"testing"

	"github.com/mcpd/mcpd/internal/ops/control"
)

func TestExcludedText(t *testing.T) {
	for _, row := range []struct {
		left        int
		quarantined []string
		want        string
	}{
		{0, nil, ""},
		{1, nil, ", 1 excluded"},
		{2, nil, ", 2 excluded"},
		{1, []string{"a"}, ", 1 quarantined (mcpd lock diff up)"},
		{2, []string{"a", "b"}, ", 2 quarantined (mcpd lock diff up)"},
		{2, []string{"a"}, ", 2 excluded, 1 of these quarantined (mcpd lock diff up)"},
	} {
		u := control.UpstreamState{Name: "up", Excluded: row.left, Quarantined: row.quarantined}
		if got := excludedText(&u); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}

func TestShownAddress_redacted(t *testing.T) {
	for address, want := range map[string]string{
		"localhost:3711":                     "localhost:3711",
		"localhost:3711/mcp?key=hunter2":     "localhost:3711…",
		"ftp://mcp.example.com/hunter2":      "ftp://mcp.example.com…",
		"ftp://[::1]:3711":                   "ftp://[::1]:3711",
		"https://u:hunter2@mcp.example.com/": "https://mcp.example.com…",
		"https://u:hunt/er2@mcp.example.com": "https://mcp.example.com",
		"u:hunter2@mcp.example.com:8080":     "mcp.example.com:8080",
		"u:hunt://er2@mcp.example.com":       "mcp.example.com",
		"https://u:hunt":                     "https://u…",
		"#hunter2":                           "…",
	} {
		if got := shownAddress(address); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

func TestHostName(t *testing.T) {
	for address, want := range map[string]string{
		"http://crm:8080/mcp":         "crm",
		"https://crm.example.com/mcp": "crm",
		"http://127.0.0.1:3711/mcp":   "upstream",
		"http://[::1]:3711/mcp":       "upstream",
		"http:///mcp":                 "upstream",
	} {
		if got := hostName(address); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
