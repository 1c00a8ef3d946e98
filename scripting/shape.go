package scripting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/mcpd/mcpd/internal/js/compiler"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/internal/js/weburl"
)

// shape is what an object may hold that a script hands over.
type shape struct {
	// what is how messages call the object.
	what     string
	members  []shapeMember
	required []string
	// meant is what to write for names that are likely to be tried.
	meant map[string]string
	// deprecated are other names of members, which still do.
	deprecated map[string]string
}

// shapeMember is one member, and what it must be.
type shapeMember struct {
	name string
	kind memberKind
}

// memberKind says what a member must be, and reads so in a message.
type memberKind string

const (
	isText   memberKind = "a string that is not empty"
	isLink   memberKind = "an absolute http or https URL"
	isNumber memberKind = "a number"
	isShare  memberKind = "a number from 0 to 1"
	isCount  memberKind = "a whole number of at least 1"
	isObject memberKind = "an object"
	isList   memberKind = "an array that is not empty"
	isTexts  memberKind = "an array of strings"
	// These are of messages to a model.
	isRole    memberKind = `"user" or "assistant"`
	isContent memberKind = "text, a block, or an array of blocks"
	isContext memberKind = `"none", "thisServer" or "allServers"`
)

// only returns a shape with some of the members, all of them required but for
// the last ones.
func (s shape) only(what string, required int, names ...string) shape {
	s.what, s.required = what, names[:required]
	s.members = slices.DeleteFunc(slices.Clone(s.members), func(m shapeMember) bool { return !slices.Contains(names, m.name) })
	return s
}

// members reads each member of an object once, and checks it. What does not
// fit is the script's mistake. Members that are undefined or null are left out.
func (r *realm) members(s shape, v goja.Value) map[string]goja.Value {
	o, ok := v.(*goja.Object)
	if !ok || jsvalue.KindOf(o) != jsvalue.Plain {
		panic(r.typeError(s.what + ": an object is needed, with " + s.names()))
	}
	found := map[string]goja.Value{}
	for _, name := range o.Keys() {
		r.proceed()
		old := name
		if now, deprecated := s.deprecated[name]; deprecated {
			name = now
		}
		i := slices.IndexFunc(s.members, func(m shapeMember) bool { return m.name == name })
		if i < 0 {
			panic(r.typeError(s.unknown(name)))
		}
		member := o.Get(old)
		if isNothing(member) {
			continue
		}
		if found[name] != nil {
			panic(r.typeError(s.what + ": " + name + " is given twice, by two names of it"))
		}
		if old != name {
			r.caller.Warn(s.what + ": " + old + " is deprecated; write " + name)
		}
		if kind := s.members[i].kind; !r.fits(member, kind) {
			panic(r.typeError(s.what + ": " + name + " must be " + string(kind)))
		}
		found[name] = member
	}
	for _, name := range s.required {
		if found[name] == nil {
			panic(r.typeError(s.what + ": " + name + " is missing"))
		}
	}
	return found
}

// maxSpelled bounds the names of members that a message repeats, in bytes. Of longer ones it
// repeats nothing: a part of a value that is hidden would not be known.
const maxSpelled = 64

func spelled(member string) string {
	if len(member) > maxSpelled {
		return fmt.Sprintf("(a name of %d bytes)", len(member))
	}
	return member
}

// unknown says what to write instead of a name that is none of the members.
func (s shape) unknown(name string) string {
	message := s.what + ": there is no member " + spelled(name)
	if meant, ok := s.meant[name]; ok {
		return message + "; write " + meant
	}
	if guess := compiler.DidYouMean(name, s.list()); guess != "" {
		return message + "; " + guess
	}
	return message + "; there is " + s.names()
}

func (s shape) list() []string {
	names := make([]string, len(s.members))
	for i, m := range s.members {
		names[i] = m.name
	}
	return names
}

// names lists the members for a message.
func (s shape) names() string { return enumerated(s.list()) }

// enumerated returns "a, b and c".
func enumerated(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// fits reports whether a member is what it must be.
func (r *realm) fits(v goja.Value, kind memberKind) bool {
	f, numeric := jsvalue.Finite(v)
	o, object := v.(*goja.Object)
	switch kind {
	case isText:
		s, ok := v.(goja.String)
		return ok && s.Length() > 0
	case isLink:
		_, ok := r.link(v)
		return ok
	case isNumber:
		return numeric
	case isShare:
		return numeric && f >= 0 && f <= 1
	case isCount:
		return numeric && f >= 1 && f == float64(int32(f))
	case isObject:
		return object && jsvalue.KindOf(o) == jsvalue.Plain
	case isList:
		return object && jsvalue.KindOf(o) == jsvalue.Array && jsvalue.LengthOf(o) > 0
	case isTexts:
		return object && jsvalue.KindOf(o) == jsvalue.Array && r.onlyTexts(o)
	case isRole:
		return among(v, "user", "assistant")
	case isContext:
		return among(v, "none", "thisServer", "allServers")
	case isContent:
		_, text := v.(goja.String)
		return text || object && (jsvalue.KindOf(o) == jsvalue.Plain || jsvalue.KindOf(o) == jsvalue.Array)
	}
	return false
}

func among(v goja.Value, texts ...string) bool {
	s, ok := v.(goja.String)
	return ok && slices.Contains(texts, s.String())
}

// link returns the address of a page, which is text or a URL, in its normal form.
func (r *realm) link(v goja.Value) (string, bool) {
	o, object := v.(*goja.Object)
	if _, ok := r.states[o].(*urlObject); object && !ok {
		return "", false
	}
	u, err := weburl.Parse(v.String(), nil)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	return u.String(), true
}

func (r *realm) onlyTexts(o *goja.Object) bool {
	for i := range jsvalue.LengthOf(o) {
		r.proceed()
		if _, ok := o.Get(index(i)).(goja.String); !ok {
			return false
		}
	}
	return true
}

// options checks the options of a function: an object with no members but the
// names, or nothing.
func (r *realm) options(what string, v goja.Value, names ...string) goja.Value {
	if isNothing(v) {
		return goja.Undefined()
	}
	o, ok := v.(*goja.Object)
	if !ok {
		panic(r.typeError(what + ": the options must be an object"))
	}
	for _, name := range o.Keys() {
		r.proceed()
		if !slices.Contains(names, name) {
			panic(r.typeError(what + ": there is no such option; there is " + strings.Join(names, ", ")))
		}
	}
	return o
}

// eachOption calls read with each member of an options object that is neither undefined nor
// null.
func (r *realm) eachOption(what string, v goja.Value, known []string, read func(name string, v goja.Value)) {
	if isNothing(v) {
		return
	}
	options, ok := v.(*goja.Object)
	if !ok {
		panic(r.typeError(what + ": the options must be an object"))
	}
	for _, name := range options.Keys() {
		r.proceed()
		value := options.Get(name)
		switch {
		case isNothing(value):
		case !slices.Contains(known, name):
			panic(r.typeError(what + ": there is no option " + name + "; there are " + enumerated(known)))
		default:
			read(name, value)
		}
	}
}

// stringArgument returns an argument that must be a string, or throws the message.
func (r *realm) stringArgument(v goja.Value, message string) string {
	if _, ok := v.(goja.String); !ok {
		panic(r.typeError(message))
	}
	return v.String()
}

// textArgument returns an argument that must be text, of at most 16 MiB.
func (r *realm) textArgument(what string, v goja.Value) string {
	if _, ok := v.(goja.String); !ok {
		panic(r.typeError(what + ": the text must be a string"))
	}
	return r.bounded(v).String()
}

func (r *realm) rangeError(message string) *goja.Object {
	return r.construct("RangeError", r.rt.ToValue(message))
}
