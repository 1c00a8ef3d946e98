package sqldb

import (
	"regexp"
	"strings"
)

// matches reports whether a path below the root matches a pattern, in which *
// stands for a run of characters and ? for one within a name, and ** for any folders.
func matches(pattern, path string) bool {
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
	ok, err := regexp.MatchString(b.String()+`\z`, path)
	return ok && err == nil
}
