package scripting

// The bounds of a regular expression. Both engines behind it parse
// recursively, and one writes repetitions out.
const (
	maxPattern  = 8 << 10 // bytes
	maxGroups   = 100     // groups inside each other
	maxExpanded = 50_000  // atoms with all repetitions written out
	maxPatterns = 100_000 // the same, for all literals of a body
)

// patternSize estimates the atoms of a regular expression with its repetitions
// written out, and says why it is refused, "" when it is not. It may count too
// much, because it knows neither escapes nor classes, but never too little.
func patternSize(pattern string) (size int, refused string) {
	if len(pattern) > maxPattern {
		return 0, "a regular expression may have at most 8 KiB"
	}
	var outer []int // the sizes in front of the open groups
	atom := 0       // the size of what a repetition would repeat
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '(':
			outer = append(outer, size)
			size, atom = 0, 0
		case ')':
			atom = size
			if n := len(outer); n > 0 {
				size += outer[n-1]
				outer = outer[:n-1]
			}
		case '{':
			size += atom * (repetitions(pattern[i+1:]) - 1)
		default:
			size, atom = size+1, 1
		}
		if len(outer) > maxGroups {
			return size, "groups may nest at most 100 deep in a regular expression"
		}
		if size > maxExpanded {
			return size, "a regular expression may have at most 50,000 atoms when its repetitions are written out"
		}
	}
	return size, ""
}

// repetitions returns the greatest number in the braces that s begins in, at
// least 1 and at most 10,000.
func repetitions(s string) int {
	most, n := 1, 0
	for i := range len(s) {
		c := s[i]
		if c != ',' && (c < '0' || c > '9') {
			break
		}
		if c == ',' {
			n = 0
			continue
		}
		n = min(10_000, n*10+int(c-'0'))
		most = max(most, n)
	}
	return most
}
