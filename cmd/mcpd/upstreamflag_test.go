package main

import "testing"

func TestNothingOfAURLIsShownThatMayBeACredential(t *testing.T) {
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

func TestServersAreNamedByTheirHostsIfTheseHaveNames(t *testing.T) {
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
