package main

import "testing"

func TestOneThingIsLeftOutAndSeveralAre(t *testing.T) {
	for _, row := range []struct {
		left        int
		quarantined []string
		want        string
	}{
		{0, nil, ""},
		{1, nil, ", of which 1 is left out"},
		{2, nil, ", of which 2 are left out"},
		{1, []string{"a"}, ", of which 1 is in quarantine (mcpd lock diff up)"},
		{2, []string{"a", "b"}, ", of which 2 are in quarantine (mcpd lock diff up)"},
		{2, []string{"a"}, ", of which 2 are left out, 1 of these in quarantine (mcpd lock diff up)"},
	} {
		u := upstreamRow{Name: "up", Left: row.left, Quarantined: row.quarantined}
		if got := u.without(); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
