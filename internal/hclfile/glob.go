package hclfile

import "strings"

// isGlob reports whether s is a pattern of paths: relative, with * for a run
// of characters and ? for one within a name, and ** alone for any folders.
func isGlob(s string) bool {
	if s == "" || len(s) > maxPatternName || strings.ContainsAny(s, "\\\x00") {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." || part != "**" && strings.Contains(part, "**") {
			return false
		}
	}
	return true
}

// matchGlob reports whether a path matches a pattern of [isGlob].
func matchGlob(pattern, path string) bool {
	parts, names := strings.Split(pattern, "/"), strings.Split(path, "/")
	return matchRun(len(parts), len(names),
		func(i int) bool { return parts[i] == "**" },
		func(i, j int) bool { return matchName(parts[i], names[j]) })
}

func matchName(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	return matchRun(len(p), len(n),
		func(i int) bool { return p[i] == '*' },
		func(i, j int) bool { return p[i] == '?' || p[i] == n[j] })
}

// matchRun reports whether n items match a pattern of m, of which those that
// are stars stand for any run of items. It asks fits at most m times n times.
func matchRun(m, n int, star func(i int) bool, fits func(i, j int) bool) bool {
	i, j, behind, from := 0, 0, -1, 0
	for j < n {
		switch {
		case i < m && star(i):
			i++
			behind, from = i, j
		case i < m && fits(i, j):
			i, j = i+1, j+1
		case behind >= 0:
			from++
			i, j = behind, from
		default:
			return false
		}
	}
	for i < m && star(i) {
		i++
	}
	return i == m
}
