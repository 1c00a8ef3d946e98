package sqltext

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestParse_parameters(t *testing.T) {
	for _, c := range []struct {
		dialect    Dialect
		text, want string
		parameters []string
	}{
		{SQLite, " SELECT :a, :b, :a -- :c\n/* :d /* :e */ ; -- :f", "SELECT $1, $2, $1", []string{"a", "b"}},
		{SQLite, "SELECT ':a'':a', \":a\", [:a], `:a`", "SELECT ':a'':a', \":a\", [:a], `:a`", nil},
		{SQLite, "SELECT '\\', :a", "SELECT '\\', $1", []string{"a"}},
		{PostgreSQL, "SELECT :a::text, $$:b$$, $x$ :c $$ $x$, E'\\':d', '\\', :e", "SELECT $1::text, $$:b$$, $x$ :c $$ $x$, E'\\':d', '\\', $2", []string{"a", "e"}},
		{PostgreSQL, "SELECT /* /* :a */ :b */ a[1 : 2], a$b$:c, 1.5e-3", "SELECT /* /* :a */ :b */ a[1 : 2], a$b$$1, 1.5e-3", []string{"c"}},
		{PostgreSQL, "SELECT name FROM t WHERE data ? 'k' AND d @> :j", "SELECT name FROM t WHERE data ? 'k' AND d @> $1", []string{"j"}},
		{PostgreSQL, "SELECT f(x := :y) -- a\r, :z", "SELECT f(x := $1) -- a\r, $2", []string{"y", "z"}},
	} {
		s, err := Parse(c.text, c.dialect)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := s.Positional(); got != c.want || !slices.Equal(s.Parameters, c.parameters) || s.Verb != "SELECT" {
			t.Errorf("%s\nis %s with %q, want %s", c.text, got, s.Parameters, c.want)
		}
	}
}

func TestParse_errors(t *testing.T) {
	for _, c := range []struct {
		dialect Dialect
		text    string
		offset  int
	}{
		{SQLite, "", 0}, {SQLite, " -- :a\n;", 0}, {SQLite, "SELECT 1; SELECT 2", 10}, {SQLite, "SELECT ?1", 7}, {SQLite, "SELECT @a", 7}, {SQLite, "SELECT $a", 7},
		{SQLite, "SELECT 'a", 7}, {SQLite, "SELECT [a", 7}, {SQLite, "SELECT /* a", 7}, {SQLite, "SELECT \x00", 7}, {SQLite, "SELECT '\x00'", 8}, {SQLite, "SELECT :é", 7},
		{SQLite, "SELECT -- \x00", 10}, {SQLite, "SELECT : a", 7},
		{PostgreSQL, "SELECT $1", 7}, {PostgreSQL, "SELECT $x$ $y$", 7}, {PostgreSQL, "SELECT E'\\'", 8}, {PostgreSQL, "SELECT /* /* */", 7}, {PostgreSQL, "SELECT :a;;DROP TABLE t", 11},
	} {
		_, err := Parse(c.text, c.dialect)
		if m, ok := err.(*Error); !ok || m.Offset != c.offset {
			t.Errorf("%q: %v at %+v, want offset %d", c.text, err, m, c.offset)
		}
	}
}

// pieces are tokens of a dialect that contain text like parameters.
func pieces(d Dialect) []string {
	common := []string{"'a :x'':y'", `"q :x"`, "/* :x ; */", "-- :x ';\n", " ", "name", "1.5", "+", "::", ",", "(", ")", "'\\'"}
	if d == SQLite {
		return append(common, "[:x]", "`:x`")
	}
	return append(common, "$$ :x ' $$", "$t$ :x $$ $t$", `E'\' :x'`, "/* /* :x */ */")
}

// Parameters are found between any other tokens.
func TestParse_combinedTokens(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		d := Dialect(random.IntN(2))
		text, want := "SELECT ", "SELECT "
		var names []string
		for range random.IntN(12) {
			if random.IntN(3) > 0 {
				piece := pieces(d)[random.IntN(len(pieces(d)))] + " "
				text, want = text+piece, want+piece
				continue
			}
			name := "p" + strconv.Itoa(random.IntN(3))
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			text, want = text+":"+name+" ", want+"$"+strconv.Itoa(1+slices.Index(names, name))+" "
		}
		s, err := Parse(text+"x", d)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := s.Positional(); got != strings.TrimSpace(want+"x") || !slices.Equal(s.Parameters, names) {
			t.Fatalf("%s\nis  %s\nnot %s", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"SELECT :a::text", "SELECT $$ $$", "SELECT E'\\''", "WITH a AS (SELECT 1) SELECT /* */ [a] -- b", "\v;:"} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, postgres bool) {
		d := SQLite
		if postgres {
			d = PostgreSQL
		}
		s, err := Parse(text, d)
		if m, ok := err.(*Error); err != nil {
			if !ok || m.Offset < 0 || m.Offset > len(text) || m.Summary == "" || m.Detail == "" {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := Parse(s.Text, d)
		if err != nil || again.Positional() != s.Positional() || !slices.Equal(again.Parameters, s.Parameters) {
			t.Errorf("%q is %q with %q; parsed again: %v", text, s.Text, s.Parameters, err)
		}
	})
}
