package grant

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseArgument(t *testing.T) {
	for written, want := range map[string][]ArgumentPart{
		"":             nil,
		"plain":        {{Literal: "plain"}},
		"{a}":          {{Param: "a"}},
		"--a={a}":      {{Literal: "--a="}, {Param: "a"}},
		"{a}{b_2}c":    {{Param: "a"}, {Param: "b_2"}, {Literal: "c"}},
		"{}":           {{Literal: "{}"}},
		"stash@{0}":    {{Literal: "stash@{0}"}},
		"{{.ID}}":      {{Literal: "{{.ID}}"}},
		"{{a}}":        {{Literal: "{"}, {Param: "a"}, {Literal: "}"}},
		"{a":           {{Literal: "{a"}},
		"{a b} {c}":    {{Literal: "{a b} "}, {Param: "c"}},
		"a}{":          {{Literal: "a}{"}},
		"{ä}{a}\xff{é": {{Literal: "{ä}"}, {Param: "a"}, {Literal: "\xff{é"}},
	} {
		if diff := cmp.Diff(want, ParseArgument(written)); diff != "" {
			t.Errorf("%q (-want +got)\n%s", written, diff)
		}
	}
}

func TestExecArguments_valuesAreVerbatim(t *testing.T) {
	g := Exec{Argv: []string{"{a}", "x{b}y", "z"}}
	got := g.Arguments(map[string]string{"a": "{b} {a}", "b": "$(id) * ' \""})
	if want := []string{"{b} {a}", "x$(id) * ' \"y", "z"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParamCompile_matchesWholeValue(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{"[a-z]+", "abc", true}, {"[a-z]+", "abc\n", false}, {"[a-z]+$", "abc\n", false}, {"^[a-z]+$", "abc", true},
		{"(?m)^[a-z]+$", "abc\nx;", false}, {"(?m)[a-z]+$", "abc\n", false}, {"a|b", "ax", false}, {"a|b", "b", true},
		{"(?s).+", "a\nb", true}, {".+", "a\nb", false}, {`a\z|b`, "ab", false}, {"(?i)abc", "ABC", true}, {"a*?", "aab", false},
	} {
		re, err := Param{Pattern: c.pattern}.Compile()
		if err != nil || re.MatchString(c.value) != c.want {
			t.Errorf("%s %q: %v, want %v", c.pattern, c.value, err, c.want)
		}
	}
	for _, pattern := range []string{"a)|(?:b", "(", "[", `\A(?:`, `)(`, `\C`, `(?=a)`} {
		if _, err := (Param{Pattern: pattern}).Compile(); err == nil {
			t.Errorf("%s compiles", pattern)
		}
	}
}

func TestParamDash(t *testing.T) {
	for pattern, want := range map[string]Dash{
		"[a-z]+": DashNever, "a-": DashNever, "^a": DashNever, "[^-].*": DashNever, "(?:a|b)-": DashNever, `\w+`: DashNever, "[0-9a-z]{2}": DashNever,
		"-v": DashExplicit, "-v|--verbose": DashExplicit, "-?[0-9]+": DashExplicit, "[-+]?[0-9]+": DashExplicit, "(x?)-": DashExplicit, "^-": DashExplicit,
		".*": DashImplied, ".": DashImplied, "(?s).": DashImplied, "[^a]+": DashImplied, "[!-~]+": DashImplied, `\W`: DashImplied, "a|.": DashImplied,
		"a?b*.": DashImplied, `\b.`: DashImplied, "-|.": DashImplied, "[a-z.-]+": DashImplied, "(": DashNever,
	} {
		if got := (Param{Pattern: pattern}).Dash(); got != want {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
}

func TestExecMayBeOption(t *testing.T) {
	g := Exec{Argv: []string{"log", "--since={since}", "{branch}", "--", "{path}", "{branch}"}}
	for param, want := range map[string]bool{"since": false, "branch": true, "path": false, "none": false} {
		if got := g.MayBeOption(param); got != want {
			t.Errorf("%s: %v, want %v", param, got, want)
		}
	}
}

// FuzzArguments compares Arguments with a replacement by hand.
func FuzzArguments(f *testing.F) {
	f.Add("--name={a}{b}", "x", "{a}")
	f.Add("{{a}}{", "$(id)", "\xff")
	f.Add("{}{b}{a b}", "", "{b}")
	f.Fuzz(func(t *testing.T, written, a, b string) {
		g := Exec{Argv: []string{written, "fixed"}}
		got := g.Arguments(map[string]string{"a": a, "b": b})
		var plain, want strings.Builder
		for _, piece := range ParseArgument(written) {
			switch {
			case (piece.Literal == "") == (piece.Param == ""):
				t.Fatalf("%q has the part %+v", written, piece)
			case piece.Param != "":
				plain.WriteString("{" + piece.Param + "}")
				want.WriteString(map[string]string{"a": a, "b": b}[piece.Param])
			default:
				plain.WriteString(piece.Literal)
				want.WriteString(piece.Literal)
			}
		}
		if plain.String() != written {
			t.Errorf("%q is parsed as %q", written, plain.String())
		}
		if len(got) != 2 || got[0] != want.String() || got[1] != "fixed" {
			t.Errorf("%q with %q and %q is %q", written, a, b, got)
		}
	})
}

func TestSharedDomain(t *testing.T) {
	for host, want := range map[string]string{
		"*.com:443": "com", "*.dev:443": "dev", "*.de:80": "de", "*.lan:80": "lan", "*.xn--p1ai:443": "xn--p1ai",
		"*.co.uk:443": "co.uk", "*.com.au:443": "com.au", "*.or.jp:443": "or.jp", "*.ac.nz:443": "ac.nz",
		"*.github.io:443": "github.io", "*.amazonaws.com:443": "amazonaws.com", "*.s3.amazonaws.com:443": "s3.amazonaws.com", "*.nip.io:80": "nip.io", "*.x.nip.io:80": "x.nip.io", "*.execute-api.us-east-1.amazonaws.com:443": "execute-api.us-east-1.amazonaws.com", "*.unip.io:80": "",
		"*.example.com:443": "", "*.mcpd.github.io:443": "", "*.shop.co.uk:443": "", "*.go.dev:443": "", "*.bbc.uk:443": "",
		"*.internal:443": "", "*.local:80": "", "*.test:80": "", "*.example:443": "",
		"com:443": "", "github.io:443": "", "api.com:443": "", "*.com": "", "*:443": "", "[::1]:443": "", "": "",
	} {
		if got := SharedDomain(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}
