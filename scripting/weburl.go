package scripting

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// webURL is a URL as the WHATWG URL standard has it. Hosts beyond ASCII are refused.
type webURL struct {
	scheme, username, password string
	host, port                 string
	hasHost                    bool
	path                       string
	opaque                     bool // the path is no list of segments, as in mailto:
	query, fragment            *string
}

var errInvalidURL = errors.New("invalid URL")

// special returns the default port of the schemes that the standard treats specially.
func special(scheme string) (port string, ok bool) {
	switch scheme {
	case "http", "ws":
		return "80", true
	case "https", "wss":
		return "443", true
	case "ftp":
		return "21", true
	case "file":
		return "", true
	}
	return "", false
}

func (u *webURL) special() bool {
	_, ok := special(u.scheme)
	return ok
}

// parseURL parses text, relative to base if that is not nil.
func parseURL(text string, base *webURL) (*webURL, error) {
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	text = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(text)
	rest, fragment, hasFragment := strings.Cut(text, "#")
	if rest == "" && !hasFragment && base != nil && base.opaque {
		return nil, errInvalidURL // such a base takes a fragment alone
	}
	u, err := parseReference(rest, base)
	if err != nil {
		return nil, err
	}
	if hasFragment {
		u.fragment = encoded(fragment, inFragment)
	}
	return u, nil
}

// parseReference parses what stands in front of the fragment.
func parseReference(text string, base *webURL) (*webURL, error) {
	scheme, rest, ok := cutScheme(text)
	if ok {
		u := &webURL{scheme: scheme}
		return u, u.parseRest(rest)
	}
	switch {
	case base == nil, base.opaque && text != "":
		return nil, errInvalidURL
	}
	u := *base
	u.fragment = nil
	return &u, u.resolve(text)
}

func cutScheme(text string) (scheme, rest string, ok bool) {
	i := strings.IndexByte(text, ':')
	if i <= 0 || text[0]|0x20 < 'a' || text[0]|0x20 > 'z' {
		return "", "", false
	}
	for _, c := range []byte(text[:i]) {
		if letter := c|0x20 >= 'a' && c|0x20 <= 'z'; !letter && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return "", "", false
		}
	}
	return strings.ToLower(text[:i]), text[i+1:], true
}

// parseRest parses what follows the scheme.
func (u *webURL) parseRest(rest string) error {
	rest, query, hasQuery := strings.Cut(rest, "?")
	if hasQuery {
		u.setQuery(query)
	}
	slashes := len(rest) - len(strings.TrimLeft(rest, u.slashes()))
	switch {
	case u.scheme == "file":
		if slashes >= 2 {
			return u.parseAuthority(rest[2:])
		}
		u.hasHost = true
		u.setPath("/" + rest)
	case u.special():
		return u.parseAuthority(rest[slashes:])
	case slashes >= 2:
		return u.parseAuthority(rest[2:])
	case slashes == 1:
		u.setPath(rest)
	default:
		u.opaque = true
		u.path = *encoded(rest, inControl)
	}
	return nil
}

// resolve changes the base that u is a copy of by a relative reference.
func (u *webURL) resolve(text string) error {
	path, query, hasQuery := strings.Cut(text, "?")
	slashes := len(path) - len(strings.TrimLeft(path, u.slashes()))
	switch {
	case slashes >= 2:
		copy := webURL{scheme: u.scheme}
		*u = copy
		if err := u.parseAuthority(path[2:]); err != nil {
			return err
		}
	case slashes == 1:
		u.setPath(path)
	case path != "":
		u.setPath(u.path[:strings.LastIndexByte(u.path, '/')+1] + path)
	}
	switch {
	case hasQuery:
		u.setQuery(query)
	case path != "":
		u.query = nil
	}
	return nil
}

// slashes are the characters that separate the segments of a path.
func (u *webURL) slashes() string {
	if u.special() {
		return `/\`
	}
	return "/"
}

func (u *webURL) parseAuthority(rest string) error {
	authority, path := rest, ""
	if i := strings.IndexAny(rest, u.slashes()); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	u.hasHost = true
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		name, password, _ := strings.Cut(authority[:i], ":")
		u.username, u.password = *encoded(name, inUserinfo), *encoded(password, inUserinfo)
		authority = authority[i+1:]
	}
	if err := u.setHostPort(authority); err != nil {
		return err
	}
	if path != "" || u.special() {
		u.setPath(path)
	}
	return nil
}

func (u *webURL) setHostPort(text string) error {
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port = text[:i], text[i+1:]
	}
	if err := u.setHost(host); err != nil {
		return err
	}
	return u.setPort(port)
}

// setPath sets the path, without . and .. segments.
func (u *webURL) setPath(path string) {
	if u.special() {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var kept []string
	for i, segment := range segments {
		last := i == len(segments)-1
		switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
		case "..":
			kept = kept[:max(0, len(kept)-1)]
			if last {
				kept = append(kept, "")
			}
		case ".":
			if last {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, *encoded(segment, inPath))
		}
	}
	u.path = "/" + strings.Join(kept, "/")
}

func (u *webURL) setQuery(query string) {
	if u.special() {
		u.query = encoded(query, inSpecialQuery)
	} else {
		u.query = encoded(query, inQuery)
	}
}

// String returns the URL as text.
func (u *webURL) String() string {
	var b strings.Builder
	b.WriteString(u.scheme + ":")
	if u.hasHost {
		b.WriteString("//")
		if u.username != "" || u.password != "" {
			b.WriteString(u.username)
			if u.password != "" {
				b.WriteString(":" + u.password)
			}
			b.WriteString("@")
		}
		b.WriteString(u.hostPort())
	} else if !u.opaque && strings.HasPrefix(u.path, "//") {
		b.WriteString("/.")
	}
	b.WriteString(u.path)
	b.WriteString(u.search(true))
	b.WriteString(u.hash(true))
	return b.String()
}

func (u *webURL) hostPort() string {
	if u.port == "" {
		return u.host
	}
	return u.host + ":" + u.port
}

// search returns the query with its question mark; an empty one only when asked for.
func (u *webURL) search(empty bool) string {
	if u.query == nil || *u.query == "" && !empty {
		return ""
	}
	return "?" + *u.query
}

// hash returns the fragment with its number sign; an empty one only when asked for.
func (u *webURL) hash(empty bool) string {
	if u.fragment == nil || *u.fragment == "" && !empty {
		return ""
	}
	return "#" + *u.fragment
}

// origin returns the origin, "null" for schemes that have none.
func (u *webURL) origin() string {
	if u.special() && u.scheme != "file" {
		return u.scheme + "://" + u.hostPort()
	}
	return "null"
}

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
