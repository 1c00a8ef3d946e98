package scripting

import (
	"net/url"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/internal/js/weburl"
)

type urlObject struct {
	url *weburl.URL
	// params is the object behind searchParams, made when it is asked for.
	params *goja.Object
}

func (r *realm) makeURL() *goja.Object {
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

func (r *realm) parseArguments(text, base goja.Value) (*weburl.URL, error) {
	if isNothing(base) {
		return weburl.Parse(r.bounded(text).String(), nil)
	}
	from, err := weburl.Parse(r.bounded(base).String(), nil)
	if err != nil {
		return nil, err
	}
	return weburl.Parse(r.bounded(text).String(), from)
}

// urlPart is a part of a URL that scripts read and, if set is there, write.
// What cannot be set is left as it was.
type urlPart struct {
	name string
	get  func(*weburl.URL) string
	set  func(*weburl.URL, string) error
}

func urlParts() []urlPart {
	return []urlPart{
		{"href", (*weburl.URL).String, func(u *weburl.URL, v string) error {
			parsed, err := weburl.Parse(v, nil)
			if err == nil {
				*u = *parsed
			}
			return err
		}},
		{"origin", (*weburl.URL).Origin, nil},
		{"protocol", func(u *weburl.URL) string { return u.Scheme + ":" }, setProtocol},
		{"username", func(u *weburl.URL) string { return u.Username }, func(u *weburl.URL, v string) error {
			u.Username = *weburl.Escape(v, weburl.InUserinfo)
			return nil
		}},
		{"password", func(u *weburl.URL) string { return u.Password }, func(u *weburl.URL, v string) error {
			u.Password = *weburl.Escape(v, weburl.InUserinfo)
			return nil
		}},
		{"host", (*weburl.URL).HostPort, (*weburl.URL).SetHostPort},
		{"hostname", func(u *weburl.URL) string { return u.Host }, (*weburl.URL).SetHost},
		{"port", func(u *weburl.URL) string { return u.Port }, (*weburl.URL).SetPort},
		{"pathname", func(u *weburl.URL) string { return u.Path }, func(u *weburl.URL, v string) error {
			if !u.Opaque {
				u.SetPath(v)
			}
			return nil
		}},
		{"search", func(u *weburl.URL) string { return u.Search(false) }, setSearch},
		{"hash", func(u *weburl.URL) string { return u.Hash(false) }, setHash},
	}
}

func setProtocol(u *weburl.URL, v string) error {
	scheme, _, _ := strings.Cut(strings.ToLower(v), ":")
	_, was := weburl.IsSpecial(u.Scheme)
	if _, is := weburl.IsSpecial(scheme); is == was {
		u.Scheme = scheme
		return u.SetPort(u.Port)
	}
	return nil
}

func setSearch(u *weburl.URL, v string) error {
	u.Query = nil
	if v != "" {
		u.SetQuery(strings.TrimPrefix(v, "?"))
	}
	return nil
}

func setHash(u *weburl.URL, v string) error {
	u.Fragment = nil
	if v != "" {
		u.Fragment = weburl.Escape(strings.TrimPrefix(v, "#"), weburl.InFragment)
	}
	return nil
}

func (r *realm) urlPart(prototype *goja.Object, part urlPart) {
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
func (r *realm) urlSearchParams(c goja.FunctionCall) goja.Value {
	o := self[*urlObject](r, c.This)
	if o.params == nil {
		class := r.caller.Needed("URLSearchParams")
		made, err := r.rt.New(class)
		if err != nil {
			panic(err)
		}
		o.params = made
		r.states[made].(*searchParams).changed = func(query string) {
			o.url.Query = nil
			if query != "" {
				o.url.Query = &query
			}
		}
		r.refreshParams(o)
	}
	return o.params
}

func (r *realm) refreshParams(o *urlObject) {
	if o.params != nil {
		r.states[o.params].(*searchParams).pairs = r.parseQuery(o.url.Search(false))
	}
}

type searchParams struct {
	pairs [][2]string
	// proceed is asked at every step of a loop over the pairs.
	proceed func()
	// changed tells the URL that the parameters belong to, if there is one.
	changed func(query string)
}

func (p *searchParams) update(pairs [][2]string) {
	p.pairs = pairs
	if p.changed != nil {
		p.changed(p.String())
	}
}

// String returns the parameters as application/x-www-form-urlencoded text.
func (p *searchParams) String() string {
	var b strings.Builder
	for i, pair := range p.pairs {
		p.proceed()
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(formEncoded(pair[0]) + "=" + formEncoded(pair[1]))
	}
	return b.String()
}

// formSigns are the signs that WHATWG encodes and Go does not, and the other way
// round.
var formSigns = strings.NewReplacer("~", "%7E", "%2A", "*")

func formEncoded(s string) string { return formSigns.Replace(url.QueryEscape(s)) }

// parseQuery reads application/x-www-form-urlencoded text.
func (r *realm) parseQuery(query string) [][2]string {
	var pairs [][2]string
	for part := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		r.proceed()
		if part != "" {
			name, value, _ := strings.Cut(part, "=")
			pairs = append(pairs, [2]string{formDecoded(name), formDecoded(value)})
		}
	}
	return pairs
}

func formDecoded(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b.WriteByte(' ')
		case s[i] == '%' && i+2 < len(s) && hexValue(s[i+1]) >= 0 && hexValue(s[i+2]) >= 0:
			b.WriteByte(byte(hexValue(s[i+1])<<4 | hexValue(s[i+2])))
			i += 2
		default:
			b.WriteByte(s[i])
		}
	}
	return validUTF8(b.String())
}

func hexValue(c byte) int {
	if c >= 'A' && c <= 'F' {
		c |= 0x20
	}
	return strings.IndexByte(jsvalue.HexDigits, c)
}

func (r *realm) isSearchParams(v goja.Value) bool {
	o, ok := v.(*goja.Object)
	if !ok {
		return false
	}
	_, ok = r.states[o].(*searchParams)
	return ok
}

// pairs reads what a URLSearchParams is made of: text, another one, an array
// of pairs, or an object.
func (r *realm) pairs(v goja.Value) [][2]string {
	o, ok := v.(*goja.Object)
	switch {
	case isNothing(v):
		return nil
	case !ok:
		return r.parseQuery(r.bounded(v).String())
	case r.isSearchParams(o):
		return slices.Clone(self[*searchParams](r, o).pairs)
	}
	var pairs [][2]string
	for _, key := range o.Keys() {
		r.proceed()
		value := o.Get(key)
		if pair, ok := value.(*goja.Object); ok && jsvalue.KindOf(o) == jsvalue.Array {
			pairs = append(pairs, [2]string{textOf(pair.Get("0")), textOf(pair.Get("1"))})
			continue
		}
		pairs = append(pairs, [2]string{key, textOf(value)})
	}
	return pairs
}

func (r *realm) readParams(prototype *goja.Object) {
	find := func(c goja.FunctionCall) (values []any) {
		p, name := self[*searchParams](r, c.This), c.Argument(0).String()
		for _, pair := range p.pairs {
			r.proceed()
			if pair[0] == name {
				values = append(values, pair[1])
			}
		}
		return values
	}
	r.method(prototype, "get", func(c goja.FunctionCall) goja.Value {
		if values := find(c); len(values) > 0 {
			return r.rt.ToValue(values[0])
		}
		return goja.Null()
	})
	r.method(prototype, "getAll", func(c goja.FunctionCall) goja.Value { return r.rt.NewArray(find(c)...) })
	r.method(prototype, "has", func(c goja.FunctionCall) goja.Value { return r.rt.ToValue(len(find(c)) > 0) })
	r.implicit(prototype, "toString", func(c goja.FunctionCall) goja.Value {
		return r.rt.ToValue(self[*searchParams](r, c.This).String())
	})
	r.accessor(prototype, "size", func(c goja.FunctionCall) goja.Value {
		return r.rt.ToValue(len(self[*searchParams](r, c.This).pairs))
	}, nil)
}

func (r *realm) writeParams(prototype *goja.Object) {
	r.method(prototype, "append", func(c goja.FunctionCall) goja.Value {
		p := self[*searchParams](r, c.This)
		p.update(append(p.pairs, [2]string{c.Argument(0).String(), c.Argument(1).String()}))
		return goja.Undefined()
	})
	r.method(prototype, "delete", func(c goja.FunctionCall) goja.Value {
		p, name := self[*searchParams](r, c.This), c.Argument(0).String()
		p.update(slices.DeleteFunc(p.pairs, func(pair [2]string) bool {
			r.proceed()
			return pair[0] == name
		}))
		return goja.Undefined()
	})
	r.method(prototype, "set", func(c goja.FunctionCall) goja.Value {
		p, name := self[*searchParams](r, c.This), c.Argument(0).String()
		p.update(p.replaced(name, c.Argument(1).String()))
		return goja.Undefined()
	})
	r.method(prototype, "sort", func(c goja.FunctionCall) goja.Value {
		p := self[*searchParams](r, c.This)
		slices.SortStableFunc(p.pairs, func(a, b [2]string) int {
			r.proceed()
			return strings.Compare(a[0], b[0])
		})
		p.update(p.pairs)
		return goja.Undefined()
	})
}

// replaced sets the first pair of that name and drops the others.
func (p *searchParams) replaced(name, value string) [][2]string {
	done := false
	var out [][2]string
	for _, pair := range p.pairs {
		p.proceed()
		if pair[0] == name {
			if done {
				continue
			}
			pair[1], done = value, true
		}
		out = append(out, pair)
	}
	if !done {
		out = append(out, [2]string{name, value})
	}
	return out
}

func (r *realm) walkParams(prototype *goja.Object) {
	list := func(pick func(pair [2]string) any) native {
		return func(c goja.FunctionCall) goja.Value {
			var items []any
			for _, pair := range self[*searchParams](r, c.This).pairs {
				r.proceed()
				items = append(items, pick(pair))
			}
			array := r.rt.NewArray(items...)
			values, _ := jsvalue.Callable(array.GetSymbol(goja.SymIterator))
			return values(array)
		}
	}
	entries := list(func(pair [2]string) any { return r.rt.NewArray(pair[0], pair[1]) })
	r.method(prototype, "entries", entries)
	r.method(prototype, "keys", list(func(pair [2]string) any { return pair[0] }))
	r.method(prototype, "values", list(func(pair [2]string) any { return pair[1] }))
	_ = prototype.DefineDataPropertySymbol(goja.SymIterator, r.function("entries", entries), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	r.method(prototype, "forEach", func(c goja.FunctionCall) goja.Value {
		visit, ok := jsvalue.Callable(c.Argument(0))
		if !ok {
			panic(r.typeError("URLSearchParams.forEach needs a function"))
		}
		for _, pair := range slices.Clone(self[*searchParams](r, c.This).pairs) {
			r.proceed()
			visit(goja.Undefined(), r.rt.ToValue(pair[1]), r.rt.ToValue(pair[0]), c.This)
		}
		return goja.Undefined()
	})
}
