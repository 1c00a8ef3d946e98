package builtins

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
	// params is the object of searchParams, created on demand.
	params *goja.Object
}

func (r *Realm) makeURL() *goja.Object {
	class, prototype := r.Class("URL", func(this *goja.Object, c goja.ConstructorCall) {
		u, err := r.parseArguments(c.Argument(0), c.Argument(1))
		if err != nil {
			panic(r.Throwable(err))
		}
		r.Bind(this, &urlObject{url: u})
	})
	r.Method(class, "canParse", func(c goja.FunctionCall) goja.Value {
		_, err := r.parseArguments(c.Argument(0), c.Argument(1))
		return r.Runtime.ToValue(err == nil)
	})
	text := func(c goja.FunctionCall) goja.Value {
		return r.Runtime.ToValue(Self[*urlObject](r, c.This).url.String())
	}
	r.defineMethod(prototype, "toString", text)
	r.defineMethod(prototype, "toJSON", text)
	for _, part := range urlParts() {
		r.urlPart(prototype, part)
	}
	r.Accessor(prototype, "searchParams", r.urlSearchParams, nil)
	return class
}

func (r *Realm) parseArguments(text, base goja.Value) (*weburl.URL, error) {
	if IsNothing(base) {
		return weburl.Parse(r.bounded(text).String(), nil)
	}
	from, err := weburl.Parse(r.bounded(base).String(), nil)
	if err != nil {
		return nil, err
	}
	return weburl.Parse(r.bounded(text).String(), from)
}

// urlPart is a part of a URL. Scripts can read it and, if set is not nil, write it. An invalid
// value leaves the part unchanged.
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

func (r *Realm) urlPart(prototype *goja.Object, part urlPart) {
	get := func(c goja.FunctionCall) goja.Value {
		return r.Runtime.ToValue(part.get(Self[*urlObject](r, c.This).url))
	}
	var set native
	if part.set != nil {
		set = func(c goja.FunctionCall) goja.Value {
			o := Self[*urlObject](r, c.This)
			changed := *o.url
			err := part.set(&changed, r.bounded(c.Argument(0)).String())
			if err != nil && part.name == "href" {
				panic(r.Throwable(err))
			}
			if err == nil {
				o.url = &changed
				r.refreshParams(o)
			}
			return goja.Undefined()
		}
	}
	r.Accessor(prototype, part.name, get, set)
}

// urlSearchParams returns the URLSearchParams of the query.
func (r *Realm) urlSearchParams(c goja.FunctionCall) goja.Value {
	o := Self[*urlObject](r, c.This)
	if o.params == nil {
		class := r.Caller.Needed("URLSearchParams")
		made, err := r.Runtime.New(class)
		if err != nil {
			panic(err)
		}
		o.params = made
		r.States[made].(*searchParams).changed = func(query string) {
			o.url.Query = nil
			if query != "" {
				o.url.Query = &query
			}
		}
		r.refreshParams(o)
	}
	return o.params
}

func (r *Realm) refreshParams(o *urlObject) {
	if o.params != nil {
		r.States[o.params].(*searchParams).pairs = r.parseQuery(o.url.Search(false))
	}
}

type searchParams struct {
	pairs [][2]string
	// proceed is called at every step of a loop over the pairs.
	proceed func()
	// changed updates the URL of the parameters; may be nil.
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

// formSigns are the characters that WHATWG and Go encode differently.
var formSigns = strings.NewReplacer("~", "%7E", "%2A", "*")

func formEncoded(s string) string { return formSigns.Replace(url.QueryEscape(s)) }

// parseQuery reads application/x-www-form-urlencoded text.
func (r *Realm) parseQuery(query string) [][2]string {
	var pairs [][2]string
	for part := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		r.Proceed()
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
	return ValidUTF8(b.String())
}

func hexValue(c byte) int {
	if c >= 'A' && c <= 'F' {
		c |= 0x20
	}
	return strings.IndexByte(jsvalue.HexDigits, c)
}

// IsSearchParams reports whether a value is a URLSearchParams.
func (r *Realm) IsSearchParams(v goja.Value) bool {
	o, ok := v.(*goja.Object)
	if !ok {
		return false
	}
	_, ok = r.States[o].(*searchParams)
	return ok
}

// pairs reads the argument of URLSearchParams: text, another one, an array of pairs, or an object.
func (r *Realm) pairs(v goja.Value) [][2]string {
	o, ok := v.(*goja.Object)
	switch {
	case IsNothing(v):
		return nil
	case !ok:
		return r.parseQuery(r.bounded(v).String())
	case r.IsSearchParams(o):
		return slices.Clone(Self[*searchParams](r, o).pairs)
	}
	var pairs [][2]string
	for _, key := range o.Keys() {
		r.Proceed()
		value := o.Get(key)
		if pair, ok := value.(*goja.Object); ok && jsvalue.KindOf(o) == jsvalue.Array {
			pairs = append(pairs, [2]string{TextOf(pair.Get("0")), TextOf(pair.Get("1"))})
			continue
		}
		pairs = append(pairs, [2]string{key, TextOf(value)})
	}
	return pairs
}

func (r *Realm) readParams(prototype *goja.Object) {
	find := func(c goja.FunctionCall) (values []any) {
		p, name := Self[*searchParams](r, c.This), c.Argument(0).String()
		for _, pair := range p.pairs {
			r.Proceed()
			if pair[0] == name {
				values = append(values, pair[1])
			}
		}
		return values
	}
	r.Method(prototype, "get", func(c goja.FunctionCall) goja.Value {
		if values := find(c); len(values) > 0 {
			return r.Runtime.ToValue(values[0])
		}
		return goja.Null()
	})
	r.Method(prototype, "getAll", func(c goja.FunctionCall) goja.Value { return r.Runtime.NewArray(find(c)...) })
	r.Method(prototype, "has", func(c goja.FunctionCall) goja.Value { return r.Runtime.ToValue(len(find(c)) > 0) })
	r.defineMethod(prototype, "toString", func(c goja.FunctionCall) goja.Value {
		return r.Runtime.ToValue(Self[*searchParams](r, c.This).String())
	})
	r.Accessor(prototype, "size", func(c goja.FunctionCall) goja.Value {
		return r.Runtime.ToValue(len(Self[*searchParams](r, c.This).pairs))
	}, nil)
}

func (r *Realm) writeParams(prototype *goja.Object) {
	r.Method(prototype, "append", func(c goja.FunctionCall) goja.Value {
		p := Self[*searchParams](r, c.This)
		p.update(append(p.pairs, [2]string{c.Argument(0).String(), c.Argument(1).String()}))
		return goja.Undefined()
	})
	r.Method(prototype, "delete", func(c goja.FunctionCall) goja.Value {
		p, name := Self[*searchParams](r, c.This), c.Argument(0).String()
		p.update(slices.DeleteFunc(p.pairs, func(pair [2]string) bool {
			r.Proceed()
			return pair[0] == name
		}))
		return goja.Undefined()
	})
	r.Method(prototype, "set", func(c goja.FunctionCall) goja.Value {
		p, name := Self[*searchParams](r, c.This), c.Argument(0).String()
		p.update(p.replaced(name, c.Argument(1).String()))
		return goja.Undefined()
	})
	r.Method(prototype, "sort", func(c goja.FunctionCall) goja.Value {
		p := Self[*searchParams](r, c.This)
		slices.SortStableFunc(p.pairs, func(a, b [2]string) int {
			r.Proceed()
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

func (r *Realm) walkParams(prototype *goja.Object) {
	list := func(pick func(pair [2]string) any) native {
		return func(c goja.FunctionCall) goja.Value {
			var items []any
			for _, pair := range Self[*searchParams](r, c.This).pairs {
				r.Proceed()
				items = append(items, pick(pair))
			}
			array := r.Runtime.NewArray(items...)
			values, _ := jsvalue.Callable(array.GetSymbol(goja.SymIterator))
			return values(array)
		}
	}
	entries := list(func(pair [2]string) any { return r.Runtime.NewArray(pair[0], pair[1]) })
	r.Method(prototype, "entries", entries)
	r.Method(prototype, "keys", list(func(pair [2]string) any { return pair[0] }))
	r.Method(prototype, "values", list(func(pair [2]string) any { return pair[1] }))
	_ = prototype.DefineDataPropertySymbol(goja.SymIterator, r.Function("entries", entries), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	r.Method(prototype, "forEach", func(c goja.FunctionCall) goja.Value {
		visit, ok := jsvalue.Callable(c.Argument(0))
		if !ok {
			panic(r.TypeError("URLSearchParams.forEach needs a function"))
		}
		for _, pair := range slices.Clone(Self[*searchParams](r, c.This).pairs) {
			r.Proceed()
			visit(goja.Undefined(), r.Runtime.ToValue(pair[1]), r.Runtime.ToValue(pair[0]), c.This)
		}
		return goja.Undefined()
	})
}
