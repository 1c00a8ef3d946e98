package uritemplate_test

import (
	"errors"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

func parse(t *testing.T, text string) *uritemplate.Template {
	t.Helper()
	template, err := uritemplate.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return template
}

// values parses "a=1 b=".
func values(text string) map[string]string {
	m := map[string]string{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		m[name] = strings.ReplaceAll(value, "_", " ")
	}
	return m
}

// The first rows are from RFC 6570 section 1.2, as far as they can be matched.
var expansions = []struct{ template, values, uri string }{
	{"x:{var}", "var=value", "x:value"},
	{"x:{hello}", "hello=Hello_World!", "x:Hello%20World%21"},
	{"x:{+hello}", "hello=Hello_World!", "x:Hello%20World!"},
	{"x:{+path}/here", "path=/foo/bar", "x:/foo/bar/here"},
	{"x:here?ref={+path}", "path=/foo/bar", "x:here?ref=/foo/bar"},
	{"X{#hello}", "hello=Hello_World!", "X#Hello%20World!"},
	{"x:map?{x,y}", "x=1024 y=768", "x:map?1024,768"},
	{"x:{x,hello,y}", "x=1024 y=768 hello=Hello_World!", "x:1024,Hello%20World%21,768"},
	{"X{.var}", "var=value", "X.value"},
	{"x:{/var}", "var=value", "x:/value"},
	{"x:{/var,x}/here", "var=value x=1024", "x:/value/1024/here"},
	{"x:{;x,y,empty}", "x=1024 y=768 empty=", "x:;x=1024;y=768;empty"},
	{"x:{?x,y,empty}", "x=1024 y=768 empty=", "x:?x=1024&y=768&empty="},
	{"x:?fixed=yes{&x}", "x=1024", "x:?fixed=yes&x=1024"},
	{"x:{?x,y}", "y=768", "x:?y=768"},
	{"x:{?x,y}", "", "x:"},

	{"crm://customers/{id}/orders/{order}", "id=C-1042 order=ä/b", "crm://customers/C-1042/orders/%C3%A4%2Fb"},
	{"x:{a}.json", "a=b.json", "x:b.json.json"},
	{"x:{a}-v/{b}", "a=1-v b=2", "x:1-v-v/2"},
	{"x:{a}.json{?q}", "a=b q=1", "x:b.json?q=1"},
	{"x:{+a}", "a=%25%", "x:%2525%25"},
	{"x:{;a,ab}", "ab=1", "x:;ab=1"},
	{"x:{;a}/{b}", "b=1", "x:/1"},
	{"x:{id}{?q}{&r}", "id=1 r=2", "x:1&r=2"},
	{"x:y", "", "x:y"},
}

func TestMatch_inverseOfExpand(t *testing.T) {
	for _, c := range expansions {
		template := parse(t, c.template)
		uri, err := template.Expand(values(c.values))
		if err != nil || uri != c.uri {
			t.Errorf("%s expands to %q, %v, want %q", c.template, uri, err, c.uri)
		}
		got, ok := template.Match(uritemplate.NewURI(c.uri))
		if diff := cmp.Diff(values(c.values), got); !ok || diff != "" {
			t.Errorf("%s does not match %s back: %v\n%s", c.template, c.uri, ok, diff)
		}
	}
}

func TestMatch_noMatch(t *testing.T) {
	for _, c := range []struct{ template, uri string }{
		{"x:{id}", "x:"}, {"x:{id}", "x:a/b"}, {"x:{id}", "x:a?b"}, {"x:{id}", "y:a"}, {"x:{id}", "x:%zz"}, {"x:{id}", "x:%ff"},
		{"x:{id}", "x:%4"}, {"x:{id}", "x:é"}, {"x:{id}", "x:" + strings.Repeat("a", uritemplate.MaxURI)},
		{"x:{+id}", "x:"}, {"x:{+id}", "x:a b"}, {"x:{+id}", "x:a\x00"}, {"x:{+id}/y", "x:/y"}, {"x:{+id}20", "x:a%20"},
		{"x:{/a,b}", "x:/a"}, {"x:{a,b}", "x:a"}, {"x:{a}/{b}", "x:a/b/c"}, {"x:{a}.json", "x:.json"}, {"x:{a}.json", "x:a.jso"},
		{"x:{?a}", "x:?"}, {"x:{?a}", "x:?a"}, {"x:{?a,b}", "x:?b=1&a=1"}, {"x:{?a}", "x:?a=1&a=2"}, {"x:{?a}", "x:?a=%ff"}, {"x:{;a}", "x:;ab"},
	} {
		if got, ok := parse(t, c.template).Match(uritemplate.NewURI(c.uri)); ok {
			t.Errorf("%s matches %q with %v", c.template, c.uri, got)
		}
	}
	if got, ok := parse(t, "x:{id}").Match(uritemplate.NewURI("x:(a)'*!~")); !ok || got["id"] != "(a)'*!~" {
		t.Errorf("characters of encodeURIComponent: %v, %v", got, ok)
	}
	if got, ok := parse(t, "x:{;a}").Match(uritemplate.NewURI("x:;a=")); !ok || got["a"] != "" || len(got) != 1 {
		t.Errorf("empty value: %v, %v", got, ok)
	}
}

// A server may have thousands of templates of one kind.
func TestMatch_noAllocationsWithoutMatch(t *testing.T) {
	template := parse(t, "x:{a}/{b}/y{?c}")
	uri := uritemplate.NewURI("x:" + strings.Repeat("%41", 1000) + "/b/z")
	allocations := testing.AllocsPerRun(10, func() {
		if _, ok := template.Match(uri); ok {
			t.Error("it fits")
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations, want none", allocations)
	}
}

func TestExpand_errors(t *testing.T) {
	for _, c := range []struct{ template, value string }{
		{"x:{a}", ""}, {"x:{+a}", ""}, {"x:{/a}", ""}, {"x:{a}", "\xff"}, {"x:{?a}", "\xff"}, {"x:{a}", strings.Repeat("é", uritemplate.MaxURI)},
	} {
		if uri, err := parse(t, c.template).Expand(map[string]string{"a": c.value}); err == nil {
			t.Errorf("%s with %q expands to %q", c.template, c.value, uri)
		}
	}
}

func TestParse_ambiguous(t *testing.T) {
	for text, want := range map[string]string{
		"x:{a}{b}":         "{a}",
		"x:{a}-{b}":        "{a}",
		"x:{a}.{b}":        "{a}",
		"x:{a}{.b}":        "{a}",
		"x:{a}{+b}":        "{a}",
		"x:{+a}{b}":        "{+a}",
		"x:{+a}/x/{b}":     "{+a}",
		"x:{+a}{?b}":       "{+a}",
		"x:{#a}{b}":        "{#a}",
		"x:{+a,b}":         "{+a,b}",
		"x:{.a,b}":         "{.a,b}",
		"x:{;a}b":          "{;a}",
		"x:{;a}{b}":        "{;a}",
		"x:{?a}&b=1":       "{?a}",
		"x:{?a}{;b}?c":     "{;b}",
		"x:{a}{;b}{c}":     "{a}",
		"x:{a}/{a}":        "{a}",
		"x:{a,a}":          "{a,a}",
		"x:{a}b{?c}d/{e}":  "{?c}",
		"x:{a}b{?c}/d{#e}": "",
	} {
		_, err := uritemplate.Parse(text)
		var refused *uritemplate.Error
		if !errors.As(err, &refused) {
			if want != "" {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		if got := text[refused.Start:refused.End]; got != want || !refused.Ambiguous || refused.Hint == "" {
			t.Errorf("%s: error at %q, want %q: %+v", text, got, want, refused)
		}
	}
}

func TestParse_malformed(t *testing.T) {
	many := "x:"
	for c := range uritemplate.MaxVariables + 1 {
		many += "/{a" + strings.Repeat("a", c) + "}"
	}
	for text, want := range map[string]string{
		"x:{a": "{", "x:a}": "}", "x:{}": "{}", "x:{a b}": "{a b}", "x:{1}": "{1}", "x:{a,}": "{a,}", "x:{,a}": "{,a}", "x:{=a}": "{=a}",
		"x:{a*}": "{a*}", "x:{a:3}": "{a:3}", "x:{a.b}": "{a.b}", "x:{%41}": "{%41}", "x:{{a}}": "{{a}", "x: a": " ", "x:%4": "%", "x:\"": "\"", "x:\xff": "\xff",
	} {
		_, err := uritemplate.Parse(text)
		var refused *uritemplate.Error
		if !errors.As(err, &refused) || text[refused.Start:refused.End] != want || refused.Ambiguous || refused.Hint == "" || refused.Error() == "" {
			t.Errorf("%s: %+v, want the range of %q", text, refused, want)
		}
	}
	for _, text := range []string{many, "x:" + strings.Repeat("a", uritemplate.MaxTemplate)} {
		if _, err := uritemplate.Parse(text); err == nil {
			t.Errorf("%.20s…: taken", text)
		}
	}
}

func TestOverlaps(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"x:{a}", "x:{b}", true},
		{"x:{a}", "y:{b}", false},
		{"x:{a}/y", "x:z/{b}", true},
		{"x:{a}/y", "x:{b}/z", false},
		{"x:{a}/y", "x:{b}", false},
		{"x:{a}/y", "x:{+b}", true},
		{"x:{a}.json", "x:{b}", true},
		{"x:{a}.json", "x:{b}.xml", false},
		{"x:{a}{?q}", "x:{b}", true},
		{"x:y{?q}", "x:y?q={b}", true},
		{"x:y{?q,r}", "x:y{?r,s}", true},
		{"x:y{?q}", "x:y?r={b}", false},
		{"x:y{;q}", "x:y;q", true},
		{"x:{a}", "x:a,b", false},
		{"x:{a,b}", "x:{+c}", true},
		{"x:{a}", "x:%41", true},
		{"x:{a}/{b}", "x:{c}/{d}/{e}", false},
	} {
		a, b := parse(t, c.a), parse(t, c.b)
		if overlap(a, b) != c.want || overlap(b, a) != c.want {
			t.Errorf("%s and %s: overlap is %v", c.a, c.b, !c.want)
		}
	}
}

func TestTemplate_accessors(t *testing.T) {
	template := parse(t, "crm://{a,b}{?c}")
	if template.String() != "crm://{a,b}{?c}" || template.Prefix() != "crm://" || parse(t, "{a}").Prefix() != "" {
		t.Errorf("got %s", template)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, template.Names()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, template.Required()); diff != "" {
		t.Error(diff)
	}
}

// It tries all combinations of four pieces.
func TestParse_acceptedIsUnambiguous(t *testing.T) {
	pieces := []string{"", "-", "/", ".a=", "?", ";", "{x}", "{+x}", "{#x}", "{.x}", "{/x,y}", "{x,y}", "{;x,y}", "{?x}", "{&x}"}
	samples := []string{"v", "-v", "a=.", "/?#", ";x0=&y1=", "%2F", "é"}
	taken := 0
	for n := range len(pieces) * len(pieces) * len(pieces) * len(pieces) {
		text := "s:"
		for i := range 4 {
			piece := pieces[n%len(pieces)]
			text += strings.NewReplacer("x", "x"+string(rune('0'+i)), "y", "y"+string(rune('0'+i))).Replace(piece)
			n /= len(pieces)
		}
		template, err := uritemplate.Parse(text)
		if err != nil {
			continue
		}
		taken++
		for shift := range 3 {
			given := map[string]string{}
			for i, name := range template.Names() {
				given[name] = samples[(i*3+shift)%len(samples)]
			}
			uri, err := template.Expand(given)
			if err != nil {
				t.Fatalf("%s with %q: %v", text, given, err)
			}
			if got, ok := template.Match(uritemplate.NewURI(uri)); !ok || !maps.Equal(got, given) {
				t.Fatalf("%s with %q expands to %q and matches it with %v, %q", text, given, uri, ok, got)
			}
		}
	}
	if taken < 5000 {
		t.Errorf("only %d templates are valid", taken)
	}
}

// FuzzRoundTrip checks that Match is the inverse of Expand, and the reverse.
func FuzzRoundTrip(f *testing.F) {
	for _, c := range expansions {
		f.Add(c.template, c.values, "x", c.uri)
	}
	f.Add("x:{a}/{+b}.z", "%41", "/?#", "x:a/b.z")
	f.Fuzz(func(t *testing.T, text, first, second, uri string) {
		template, err := uritemplate.Parse(text)
		if err != nil {
			return
		}
		given := map[string]string{}
		for i, name := range template.Names() {
			switch i % 3 {
			case 0:
				given[name] = first
			case 1:
				given[name] = second
			}
		}
		if made, err := template.Expand(given); err == nil {
			got, ok := template.Match(uritemplate.NewURI(made))
			if !ok || !maps.Equal(got, given) {
				t.Fatalf("%s with %q expands to %q and matches it with %v, %q", text, given, made, ok, got)
			}
		}
		got, ok := template.Match(uritemplate.NewURI(uri))
		if !ok {
			return
		}
		made, err := template.Expand(got)
		if err != nil && len(uri)*3 < uritemplate.MaxURI {
			t.Fatalf("%s matches %q with %q but does not expand: %v", text, uri, got, err)
		}
		if again, ok := template.Match(uritemplate.NewURI(made)); err == nil && (!ok || !maps.Equal(again, got)) {
			t.Fatalf("%s matches %q with %q, but %q with %q", text, uri, got, made, again)
		}
	})
}

// FuzzOverlap checks that two templates that match the same URI overlap.
func FuzzOverlap(f *testing.F) {
	f.Add("x:{a}/y", "x:z/{b}", "x:z/y")
	f.Add("x:y{?q,r}", "x:y{?r}", "x:y?r=1")
	f.Add("x:y{;q}", "x:y;q", "x:y;q")
	f.Fuzz(func(t *testing.T, first, second, uri string) {
		a, err := uritemplate.Parse(first)
		if err != nil {
			return
		}
		b, err := uritemplate.Parse(second)
		if err != nil {
			return
		}
		_, okA := a.Match(uritemplate.NewURI(uri))
		_, okB := b.Match(uritemplate.NewURI(uri))
		if okA && okB && !overlap(a, b) {
			t.Fatalf("%s and %s both match %q", first, second, uri)
		}
		if overlap(a, b) != overlap(b, a) {
			t.Fatalf("%s and %s overlap one way", first, second)
		}
	})
}

// overlap compares without a limit.
func overlap(a, b *uritemplate.Template) bool {
	steps := math.MaxInt
	return a.Overlaps(b, &steps)
}

func TestOverlaps_outOfSteps(t *testing.T) {
	a, err := uritemplate.Parse("x:{a}/{b}")
	if err != nil {
		t.Fatal(err)
	}
	if steps := 3; a.Overlaps(a, &steps) || steps != 0 {
		t.Errorf("%d steps are left", steps)
	}
}
