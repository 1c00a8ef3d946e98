package scripting

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// setHost sets the host, in lower case and with numbers as IP addresses.
func (u *webURL) setHost(host string) error {
	if strings.HasPrefix(host, "[") {
		address, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil || !address.Is6() || address.Zone() != "" || !strings.HasSuffix(host, "]") {
			return errInvalidURL
		}
		u.host = "[" + address.String() + "]"
		return nil
	}
	if !u.special() {
		if strings.ContainsAny(host, "\x00\t\n\r #/<>?@[\\]^|:") {
			return errInvalidURL
		}
		u.host = *encoded(host, inControl)
		return nil
	}
	if host == "" {
		if u.scheme == "file" {
			u.host = ""
			return nil
		}
		return errInvalidURL
	}
	return u.setDomain(host)
}

// setDomain sets the host of a URL with a special scheme.
func (u *webURL) setDomain(host string) error {
	name, err := url.PathUnescape(host)
	if err != nil {
		return errInvalidURL
	}
	name = strings.ToLower(name)
	for _, r := range name {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune("#%/:<>?@[\\]^`{|}", r) {
			return errInvalidURL
		}
	}
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	if last := labels[len(labels)-1]; numeric(last) {
		address, err := parseIPv4(labels)
		if err != nil {
			return err
		}
		name = address
	}
	if u.scheme == "file" && name == "localhost" {
		name = ""
	}
	u.host = name
	return nil
}

// numeric reports whether a label makes the host an IPv4 address.
func numeric(label string) bool {
	if label == "" {
		return false
	}
	if _, err := parsePart(label); err == nil {
		return true
	}
	return strings.Trim(label, "0123456789") == ""
}

// parseIPv4 reads the forms that browsers take: decimal, octal and
// hexadecimal parts, the last of which may stand for several bytes.
func parseIPv4(labels []string) (string, error) {
	if len(labels) > 4 {
		return "", errInvalidURL
	}
	var address uint64
	for i, label := range labels {
		n, err := parsePart(label)
		if err != nil {
			return "", errInvalidURL
		}
		if i < len(labels)-1 {
			if n > 255 {
				return "", errInvalidURL
			}
			address |= n << (8 * (3 - i))
			continue
		}
		if n >= 1<<(8*(5-len(labels))) {
			return "", errInvalidURL
		}
		address |= n
	}
	return netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)}).String(), nil
}

func parsePart(label string) (uint64, error) {
	switch {
	case label == "":
		return 0, errInvalidURL
	case label == "0x":
		return 0, nil
	case strings.HasPrefix(label, "0x"):
		return strconv.ParseUint(label[2:], 16, 64)
	case len(label) > 1 && label[0] == '0':
		return strconv.ParseUint(label[1:], 8, 64)
	}
	return strconv.ParseUint(label, 10, 64)
}

// setPort sets the port, none for the scheme's default.
func (u *webURL) setPort(port string) error {
	u.port = ""
	if port == "" {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return errInvalidURL
	}
	text := strconv.FormatUint(n, 10)
	if standard, _ := special(u.scheme); text != standard {
		u.port = text
	}
	return nil
}

// The characters beside controls and those beyond ASCII that the parts of a
// URL percent-encode.
const (
	inControl      = ""
	inFragment     = " \"<>`"
	inQuery        = " \"#<>"
	inSpecialQuery = inQuery + "'"
	inPath         = inQuery + "?`{}^"
	inUserinfo     = inPath + "/:;=@[\\]|"
)

// encoded returns text with what must be percent-encoded encoded.
func encoded(text, set string) *string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' || strings.IndexByte(set, c) >= 0 {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
			continue
		}
		b.WriteByte(c)
	}
	out := b.String()
	return &out
}

const upperHex = "0123456789ABCDEF"
