package sqldb

import (
	"regexp"
	"strings"
)

// compileGlob returns the expression that matches what a pattern does among the
// paths below a root: in it * stands for a run of characters and ? for one within
// a name, and ** for any folders. It is nil for what is no text.
func compileGlob(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "**" && last:
			b.WriteString(`.+`)
		case part == "**":
			b.WriteString(`(?:[^/]+/)*`)
		default:
			b.WriteString(strings.NewReplacer(`\*`, `[^/]*`, `\?`, `[^/]`).Replace(regexp.QuoteMeta(part)))
			if !last {
				b.WriteString("/")
			}
		}
	}
	glob, _ := regexp.Compile(b.String() + `\z`)
	return glob
}
