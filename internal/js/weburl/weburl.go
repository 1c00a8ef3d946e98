// Package weburl parses, modifies and formats URLs according to the WHATWG URL standard, for the
// class URL of scripts. It does not depend on scripts. Start at [Parse].
package weburl

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// URL is a URL of the WHATWG URL standard. Hosts beyond ASCII are not supported.
type URL struct {
	Scheme, Username, Password string
	Host, Port                 string
	hasHost                    bool
	Path                       string
	Opaque                     bool // the path is not a list of segments, as in mailto:
	Query, Fragment            *string
}

var errInvalidURL = errors.New("invalid URL")

// IsSpecial returns the default port of a special scheme.
func IsSpecial(scheme string) (port string, ok bool) {
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

func (u *URL) special() bool {
	_, ok := IsSpecial(u.Scheme)
	return ok
}

// Parse parses text, relative to base if that is not nil.
func Parse(text string, base *URL) (*URL, error) {
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	text = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(text)
	rest, fragment, hasFragment := strings.Cut(text, "#")
	if rest == "" && !hasFragment && base != nil && base.Opaque {
		return nil, errInvalidURL // such a base accepts only a fragment
	}
	u, err := parseReference(rest, base)
	if err != nil {
		return nil, err
	}
	if hasFragment {
		u.Fragment = Escape(fragment, InFragment)
	}
	return u, nil
}

// parseReference parses the text before the fragment.
func parseReference(text string, base *URL) (*URL, error) {
	scheme, rest, ok := cutScheme(text)
	if ok {
		u := &URL{Scheme: scheme}
		return u, u.parseRest(rest)
	}
	switch {
	case base == nil, base.Opaque && text != "":
		return nil, errInvalidURL
	}
	u := *base
	u.Fragment = nil
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

// parseRest parses the text after the scheme.
func (u *URL) parseRest(rest string) error {
	rest, query, hasQuery := strings.Cut(rest, "?")
	if hasQuery {
		u.SetQuery(query)
	}
	slashes := len(rest) - len(strings.TrimLeft(rest, u.slashes()))
	switch {
	case u.Scheme == "file":
		if slashes >= 2 {
			return u.parseAuthority(rest[2:])
		}
		u.hasHost = true
		u.SetPath("/" + rest)
	case u.special():
		return u.parseAuthority(rest[slashes:])
	case slashes >= 2:
		return u.parseAuthority(rest[2:])
	case slashes == 1:
		u.SetPath(rest)
	default:
		u.Opaque = true
		u.Path = *Escape(rest, inControl)
	}
	return nil
}

// resolve resolves a relative reference; u is a copy of the base.
func (u *URL) resolve(text string) error {
	path, query, hasQuery := strings.Cut(text, "?")
	slashes := len(path) - len(strings.TrimLeft(path, u.slashes()))
	switch {
	case slashes >= 2:
		copy := URL{Scheme: u.Scheme}
		*u = copy
		if err := u.parseAuthority(path[2:]); err != nil {
			return err
		}
	case slashes == 1:
		u.SetPath(path)
	case path != "":
		u.SetPath(u.Path[:strings.LastIndexByte(u.Path, '/')+1] + path)
	}
	switch {
	case hasQuery:
		u.SetQuery(query)
	case path != "":
		u.Query = nil
	}
	return nil
}

// slashes are the characters that separate the segments of a path.
func (u *URL) slashes() string {
	if u.special() {
		return `/\`
	}
	return "/"
}

func (u *URL) parseAuthority(rest string) error {
	authority, path := rest, ""
	if i := strings.IndexAny(rest, u.slashes()); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	u.hasHost = true
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		name, password, _ := strings.Cut(authority[:i], ":")
		u.Username, u.Password = *Escape(name, InUserinfo), *Escape(password, InUserinfo)
		authority = authority[i+1:]
	}
	if err := u.SetHostPort(authority); err != nil {
		return err
	}
	if path != "" || u.special() {
		u.SetPath(path)
	}
	return nil
}

func (u *URL) SetHostPort(text string) error {
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port = text[:i], text[i+1:]
	}
	if err := u.SetHost(host); err != nil {
		return err
	}
	return u.SetPort(port)
}

// SetPath sets the path, without . and .. segments.
func (u *URL) SetPath(path string) {
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
			kept = append(kept, *Escape(segment, inPath))
		}
	}
	u.Path = "/" + strings.Join(kept, "/")
}

func (u *URL) SetQuery(query string) {
	if u.special() {
		u.Query = Escape(query, inSpecialQuery)
	} else {
		u.Query = Escape(query, inQuery)
	}
}

// String returns the URL as text.
func (u *URL) String() string {
	var b strings.Builder
	b.WriteString(u.Scheme + ":")
	if u.hasHost {
		b.WriteString("//")
		if u.Username != "" || u.Password != "" {
			b.WriteString(u.Username)
			if u.Password != "" {
				b.WriteString(":" + u.Password)
			}
			b.WriteString("@")
		}
		b.WriteString(u.HostPort())
	} else if !u.Opaque && strings.HasPrefix(u.Path, "//") {
		b.WriteString("/.")
	}
	b.WriteString(u.Path)
	b.WriteString(u.Search(true))
	b.WriteString(u.Hash(true))
	return b.String()
}

func (u *URL) HostPort() string {
	if u.Port == "" {
		return u.Host
	}
	return u.Host + ":" + u.Port
}

// Search returns the query with its question mark. If empty is set, an empty query is included.
func (u *URL) Search(empty bool) string {
	if u.Query == nil || *u.Query == "" && !empty {
		return ""
	}
	return "?" + *u.Query
}

// Hash returns the fragment with its number sign. If empty is set, an empty fragment is included.
func (u *URL) Hash(empty bool) string {
	if u.Fragment == nil || *u.Fragment == "" && !empty {
		return ""
	}
	return "#" + *u.Fragment
}

// Origin returns the origin; "null" for schemes without one.
func (u *URL) Origin() string {
	if u.special() && u.Scheme != "file" {
		return u.Scheme + "://" + u.HostPort()
	}
	return "null"
}

// SetHost sets the host, in lower case and with numbers as IP addresses.
func (u *URL) SetHost(host string) error {
	if strings.HasPrefix(host, "[") {
		address, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil || !address.Is6() || address.Zone() != "" || !strings.HasSuffix(host, "]") {
			return errInvalidURL
		}
		u.Host = "[" + address.String() + "]"
		return nil
	}
	if !u.special() {
		if strings.ContainsAny(host, "\x00\t\n\r #/<>?@[\\]^|:") {
			return errInvalidURL
		}
		u.Host = *Escape(host, inControl)
		return nil
	}
	if host == "" {
		if u.Scheme == "file" {
			u.Host = ""
			return nil
		}
		return errInvalidURL
	}
	return u.setDomain(host)
}

// setDomain sets the host of a URL with a special scheme.
func (u *URL) setDomain(host string) error {
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
	if u.Scheme == "file" && name == "localhost" {
		name = ""
	}
	u.Host = name
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

// parseIPv4 parses all forms of browsers: decimal, octal and hexadecimal parts; the last part may
// have several bytes.
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

// SetPort sets the port. The default port of the scheme is omitted.
func (u *URL) SetPort(port string) error {
	u.Port = ""
	if port == "" {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return errInvalidURL
	}
	text := strconv.FormatUint(n, 10)
	if standard, _ := IsSpecial(u.Scheme); text != standard {
		u.Port = text
	}
	return nil
}

// Characters that are percent-encoded in the parts of a URL, besides controls and non-ASCII.
const (
	inControl      = ""
	InFragment     = " \"<>`"
	inQuery        = " \"#<>"
	inSpecialQuery = inQuery + "'"
	inPath         = inQuery + "?`{}^"
	InUserinfo     = inPath + "/:;=@[\\]|"
)

// Escape percent-encodes the characters of set in text.
func Escape(text, set string) *string {
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
