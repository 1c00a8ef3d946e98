package wildcard_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/wildcard"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		fits          bool
	}{
		{"crm_get", "crm_get", true}, {"crm_get", "crm_gets", false}, {"", "", true}, {"", "a", false},
		{"*", "", true}, {"*", "anything", true}, {"crm_*", "crm_", true}, {"crm_*", "crm", false}, {"*_get", "crm_get", true},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a**b", "ab", true}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "a-c-b", false}, {"a*bc*c", "abc", false},
	} {
		if got := wildcard.Matches(test.pattern, test.name); got != test.fits {
			t.Errorf("%q and %q: %v, want %v", test.pattern, test.name, got, test.fits)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b*c", "axbxc")
	f.Add("*", "")
	f.Add("a*a", "a")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		pieces := strings.Split(pattern, "*")
		for i := range pieces {
			pieces[i] = regexp.QuoteMeta(pieces[i])
		}
		re, err := regexp.Compile(`(?s)\A` + strings.Join(pieces, ".*") + `\z`)
		if err != nil || strings.ToValidUTF8(pattern+name, "") != pattern+name {
			t.Skip("not valid in a regular expression")
		}
		if got, want := wildcard.Matches(pattern, name), re.MatchString(name); got != want {
			t.Errorf("%q and %q: %v, want %v", pattern, name, got, want)
		}
	})
}
