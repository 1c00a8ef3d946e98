package schema

import "strings"

// isUUID reports whether s is a UUID in its textual form (RFC 9562 section 4).
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHex(s[i]) {
				return false
			}
		}
	}
	return true
}

// isPointer reports whether s is a JSON pointer (RFC 6901 section 3).
func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}

// isRelativePointer reports whether s is a relative JSON pointer.
func isRelativePointer(s string) bool {
	rest := strings.TrimLeft(s, "0123456789")
	up := s[:len(s)-len(rest)]
	if up == "" || len(up) > 1 && up[0] == '0' {
		return false
	}
	return rest == "#" || isPointer(rest)
}
