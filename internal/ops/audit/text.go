package audit

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/redact"
)

const (
	// maxText is the length in bytes of a text in a record; longer ones end in an ellipsis.
	maxText = 1 << 10
	// maxName is the length in bytes of the name of a member; longer ones are left out.
	maxName = 128
	// maxMembers is how many members or items of one value are kept.
	maxMembers = 64

	ellipsis = "…"
	hexits   = "0123456789abcdef"
)

// appendString appends a JSON string of at most so many bytes of s. Whatever
// could steer a terminal or reorder a line on it is escaped, and bytes that are
// no UTF-8 become U+FFFD.
func appendString(dst []byte, s string, most int) []byte {
	cut := len(s) > most
	if cut {
		s = s[:most]
		for !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) && len(s) > most-utf8.UTFMax {
			s = s[:len(s)-1]
		}
	}
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			dst = appendASCII(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		dst = appendRune(dst, r)
		i += size
	}
	if cut {
		dst = append(dst, ellipsis...)
	}
	return append(dst, '"')
}

func appendASCII(dst []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c < 0x20 || c == 0x7f:
		return appendEscape(dst, rune(c))
	}
	return append(dst, c)
}

// appendRune appends a character beyond ASCII, escaped when it is not seen.
func appendRune(dst []byte, r rune) []byte {
	if r != utf8.RuneError && unicode.IsPrint(r) {
		return utf8.AppendRune(dst, r)
	}
	if r < 0x10000 {
		return appendEscape(dst, r)
	}
	r -= 0x10000
	return appendEscape(appendEscape(dst, 0xd800+r>>10), 0xdc00+r&0x3ff)
}

func appendEscape(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexits[r>>12&15], hexits[r>>8&15], hexits[r>>4&15], hexits[r&15])
}

// appendShown appends JSON in which what is not seen is escaped as in appendString.
func appendShown(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] < utf8.RuneSelf {
			if raw[i] == 0x7f {
				dst = appendEscape(dst, 0x7f)
			} else {
				dst = append(dst, raw[i])
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(raw[i:])
		dst = appendRune(dst, r)
		i += size
	}
	return dst
}

// fits reports whether a text may be the name of a member: one that was cut or
// mended could be that of another.
func fits(name string) bool {
	return len(name) <= maxName && name != ellipsis && utf8.ValidString(name)
}

// secretWords are parts of names whose values nobody is meant to see.
var secretWords = [...]string{
	"secret", "password", "passwd", "passphrase", "token", "credential", "api_key", "apikey", "api-key", "authorization",
	"cookie", "private_key", "privatekey", "private-key", "assertion", "jwt", "signature",
}

// looksSecret reports whether a member of this name is likely to hold a secret.
func looksSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

const mark = `"` + redact.Mark + `"`
