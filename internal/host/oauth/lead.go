package oauth

import (
	"net/url"
	"path"
	"strings"
)

// Leads reports whether an address that somebody else would have a user open leads to
// where one of the clients sends its users, or to where they come back: a visit of
// somebody else would be theirs to complete. An address of which browsers may make
// another one leads there, too.
func (i *Issuer) Leads(address string) bool {
	for _, u := range i.all() {
		if to := placeOf(address); to == "" || to == placeOf(u.client.AuthorizeURL) || to == placeOf(u.client.RedirectURL) {
			return true
		}
	}
	return false
}

// placeOf returns scheme, host and path of an address, the same for every way to
// write them; "" of one that browsers may read in another way.
func placeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == '\\' }) {
		return ""
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return u.Scheme + ":"
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Scheme + "://" + name + ":" + port + strings.ToLower(path.Clean("/"+u.Path))
}
