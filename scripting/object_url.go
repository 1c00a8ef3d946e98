package scripting

import (
	"strings"

	"github.com/dop251/goja"
)

// urlObject is the Go half of a URL.
type urlObject struct {
	url *webURL
	// params is the object behind searchParams, made when it is asked for.
	params *goja.Object
}

// makeURL makes URL.
func (r *run) makeURL() *goja.Object {
	class, prototype := r.class("URL", func(this *goja.Object, c goja.ConstructorCall) {
		u, err := r.parseArguments(c.Argument(0), c.Argument(1))
		if err != nil {
			panic(r.throwable(err))
		}
		r.bind(this, &urlObject{url: u})
	})
	r.method(class, "canParse", func(c goja.FunctionCall) goja.Value {
		_, err := r.parseArguments(c.Argument(0), c.Argument(1))
		return r.rt.ToValue(err == nil)
	})
	text := func(c goja.FunctionCall) goja.Value { return r.rt.ToValue(self[*urlObject](r, c.This).url.String()) }
	r.implicit(prototype, "toString", text)
	r.implicit(prototype, "toJSON", text)
	for _, part := range urlParts() {
		r.urlPart(prototype, part)
	}
	r.accessor(prototype, "searchParams", r.urlSearchParams, nil)
	return class
}

func (r *run) parseArguments(text, base goja.Value) (*webURL, error) {
	if isNothing(base) {
		return parseURL(r.bounded(text).String(), nil)
	}
	from, err := parseURL(r.bounded(base).String(), nil)
	if err != nil {
		return nil, err
	}
	return parseURL(r.bounded(text).String(), from)
}

// urlPart is a part of a URL that scripts read and, if set is there, write.
// What cannot be set is left as it was.
type urlPart struct {
	name string
	get  func(*webURL) string
	set  func(*webURL, string) error
}

func urlParts() []urlPart {
	return []urlPart{
		{"href", (*webURL).String, func(u *webURL, v string) error {
			parsed, err := parseURL(v, nil)
			if err == nil {
				*u = *parsed
			}
			return err
		}},
		{"origin", (*webURL).origin, nil},
		{"protocol", func(u *webURL) string { return u.scheme + ":" }, setProtocol},
		{"username", func(u *webURL) string { return u.username }, func(u *webURL, v string) error {
			u.username = *encoded(v, inUserinfo)
			return nil
		}},
		{"password", func(u *webURL) string { return u.password }, func(u *webURL, v string) error {
			u.password = *encoded(v, inUserinfo)
			return nil
		}},
		{"host", (*webURL).hostPort, (*webURL).setHostPort},
		{"hostname", func(u *webURL) string { return u.host }, (*webURL).setHost},
		{"port", func(u *webURL) string { return u.port }, (*webURL).setPort},
		{"pathname", func(u *webURL) string { return u.path }, func(u *webURL, v string) error {
			if !u.opaque {
				u.setPath(v)
			}
			return nil
		}},
		{"search", func(u *webURL) string { return u.search(false) }, setSearch},
		{"hash", func(u *webURL) string { return u.hash(false) }, setHash},
	}
}

func setProtocol(u *webURL, v string) error {
	scheme, _, _ := strings.Cut(strings.ToLower(v), ":")
	_, was := special(u.scheme)
	if _, is := special(scheme); is == was {
		u.scheme = scheme
		return u.setPort(u.port)
	}
	return nil
}

func setSearch(u *webURL, v string) error {
	u.query = nil
	if v != "" {
		u.setQuery(strings.TrimPrefix(v, "?"))
	}
	return nil
}

func setHash(u *webURL, v string) error {
	u.fragment = nil
	if v != "" {
		u.fragment = encoded(strings.TrimPrefix(v, "#"), inFragment)
	}
	return nil
}

func (r *run) urlPart(prototype *goja.Object, part urlPart) {
	get := func(c goja.FunctionCall) goja.Value {
		return r.rt.ToValue(part.get(self[*urlObject](r, c.This).url))
	}
	var set native
	if part.set != nil {
		set = func(c goja.FunctionCall) goja.Value {
			o := self[*urlObject](r, c.This)
			changed := *o.url
			err := part.set(&changed, r.bounded(c.Argument(0)).String())
			if err != nil && part.name == "href" {
				panic(r.throwable(err))
			}
			if err == nil {
				o.url = &changed
				r.refreshParams(o)
			}
			return goja.Undefined()
		}
	}
	r.accessor(prototype, part.name, get, set)
}

// urlSearchParams returns the URLSearchParams that shows and changes the query.
func (r *run) urlSearchParams(c goja.FunctionCall) goja.Value {
	o := self[*urlObject](r, c.This)
	if o.params == nil {
		class := r.needed("URLSearchParams")
		made, err := r.rt.New(class)
		if err != nil {
			panic(err)
		}
		o.params = made
		r.states[made].(*searchParams).changed = func(query string) {
			o.url.query = nil
			if query != "" {
				o.url.query = &query
			}
		}
		r.refreshParams(o)
	}
	return o.params
}

func (r *run) refreshParams(o *urlObject) {
	if o.params != nil {
		r.states[o.params].(*searchParams).pairs = r.parseQuery(o.url.search(false))
	}
}
