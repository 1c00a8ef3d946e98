package scripting

import (
	"errors"
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
		if !isAlnum(c) && c != '+' && c != '-' && c != '.' {
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
