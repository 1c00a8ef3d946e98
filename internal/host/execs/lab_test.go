package execs

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// patterns are patterns of authors, careful or not.
var patterns = []string{
	"[a-z]+", "[a-z]+$", "^[a-z]+$", "(?m)^[a-z]+$", "[a-z0-9][a-z0-9_.-]*", `\w+`, `[^-\s]\S*`, "a|b", "[A-Za-z ]+", `[^-].*`,
	`(?s)[^-].*`, `[^-][^/]*`, `v[0-9]+(\.[0-9]+)*`, "-?[0-9]+", "-v|--verbose", `\p{L}+`, "(?i)main|dev", `[a-z]+=[a-z]+`,
	// A file with these does not load; the broker must still be safe.
	".*", "(?s).*", ".+", "[^;]*", "",
}

// values are hostile and accidental values.
var values = []string{
	"", " ", "a", "abc", "a b", "main", "v1.2", "-5", "k=v", "abc\n", "\nabc", "abc\r", "abc\r\n", "abc\n-rf", "a\nb", "abc\x00", "\x00", "a\x00--evil",
	"-", "--", "-a", "-rf", "--x=y", "--upload-pack=id", "-oProxyCommand=id", "-v", "--verbose", "--verbose=1", "-v\n", " -a", "\t-a", "‐a", "−a", "－a", "\u200b-a", "\ufeff-a",
	"@file", "@/etc/passwd", "file:///etc/passwd", "../../etc/passwd", "/etc/passwd", "~root", "$HOME", "${HOME}", "$(id)", "`id`", "$((1+1))",
	"a;id", "a&id", "a|id", "a>b", "a<b", "a&&id", "a||id", "!x", "#x", "*", "?", "[a-z]", "{a,b}", "{p}", "{{p}}", "{q}", "%s", "%n", "%0a", "\\", "\\n", "a\\",
	"'", "''", "\"", "a'b", "a\"b", "' --evil '", "\" --evil \"", "\u2018", "é", "e\u0301", "ﬀ", "a\u202eb", "日本", "😀", "\u0085", "\u2028", "\x1b[31m", "\x7f",
	"\xff", "a\xffb", "\xc0\xaf", "\xed\xa0\x80", strings.Repeat("a", 256), strings.Repeat("a", 257), strings.Repeat("é", 200), strings.Repeat("-", 300),
}

// places returns argument lists that contain a value.
func places() map[string][]string {
	return map[string][]string{
		"whole":           {"tell", "fixed", "{p}", "last"},
		"behind a name":   {"tell", "--name={p}"},
		"within":          {"tell", "a{p}b{p}"},
		"behind a double": {"tell", "--", "{p}"},
	}
}

// whole reports whether a pattern matches all of a value, without using anchors.
func whole(pattern, value string) bool {
	re := regexp.MustCompile(pattern)
	re.Longest()
	at := re.FindStringIndex(value)
	return at != nil && at[0] == 0 && at[1] == len(value)
}

// TestParse tries every value with every pattern in every place, and compares with the
// arguments that the program receives.
func TestParse(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	b := broker()
	forms, ran := 0, map[string]bool{}
	for place, argv := range places() {
		for _, pattern := range patterns {
			g := grantOf(t, argv...)
			g.Params = []grant.Param{{Name: "p", Pattern: pattern, MaxLength: 256}}
			for _, value := range values {
				forms++
				payload := map[string]string{"p": value}
				arguments, err := Compile(g).Parse(mustJSON(t, payload))
				sent := string([]rune(value)) // as JSON transports it
				if err != nil {
					continue
				}
				if value == "" || strings.Contains(value, "\x00") || len(sent) > 256 || !whole(pattern, sent) {
					t.Errorf("%s: %q passed %q", place, value, pattern)
				}
				if place == "whole" && strings.HasPrefix(value, "-") && pattern != "-?[0-9]+" && pattern != "-v|--verbose" {
					t.Errorf("%q passed %q as an option", value, pattern)
				}
				var want []string
				for _, a := range argv {
					want = append(want, strings.ReplaceAll(a, "{p}", sent))
				}
				if !slices.Equal(arguments, want) {
					t.Errorf("%s: %q became %q, want %q", place, value, arguments, want)
				}
				if key := place + value; !ran[key] {
					ran[key] = true
					checkTold(t, b, g, payload, want[1:])
				}
			}
		}
	}
	if forms < 500 || len(ran) < 100 {
		t.Errorf("%d forms tried, %d ran", forms, len(ran))
	}
}

// checkTold compares the arguments that a program reports.
func checkTold(t *testing.T, b *Broker, g grant.Exec, params map[string]string, want []string) {
	t.Helper()
	got, refusal := run(t, b, g, params)
	if refusal != "" || got.Code != 0 {
		t.Errorf("%q: %s, code %d, %s", params, refusal, got.Code, got.Stderr)
		return
	}
	var arguments []string
	for line := range strings.Lines(got.Stdout) {
		text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, string(text))
	}
	if !slices.Equal(arguments, want) {
		t.Errorf("%q: the program got %q, want %q", params, arguments, want)
	}
}

// Two parameters contain each other's placeholders.
func TestParse_separateArguments(t *testing.T) {
	g := grantOf(t, "tell", "{p}", "x{q}")
	g.Params = []grant.Param{{Name: "p", Pattern: "[^-].*", MaxLength: 256}, {Name: "q", Pattern: "[^-].*", MaxLength: 256}}
	checkTold(t, broker(), g, map[string]string{"p": "{q}", "q": "{p} {q}"}, []string{"{q}", "x{p} {q}"})
}
