package main

import (
	"strings"
	"testing"
)

func TestASummaryIsAsManyWordsOfTheFirstLineAsFit(t *testing.T) {
	for _, row := range []struct{ said, want string }{
		{"  Adds two numbers.\nIn words.", "Adds two numbers."},
		{strings.Repeat("über ", 24), strings.TrimSpace(strings.Repeat("über ", 24))},
		{strings.Repeat("über ", 25), strings.Repeat("über ", 24) + "…"},
		{strings.Repeat("x", 200), strings.Repeat("x", 120) + " …"},
	} {
		if got := summaryOf(row.said); got != row.want {
			t.Errorf("%q: %q", row.said, got)
		}
	}
}
