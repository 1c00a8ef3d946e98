package builtins

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/compiler"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/internal/js/weburl"
)

// Shape describes the members of an object argument.
type Shape struct {
	// What is the name of the object in messages.
	What     string
	Members  []ShapeMember
	Required []string
	// Suggestions maps likely wrong names to correct ones.
	Suggestions map[string]string
	// Deprecated maps deprecated names of members to current ones. They still work.
	Deprecated map[string]string
}

// ShapeMember is one member and its kind.
type ShapeMember struct {
	Name string
	Kind MemberKind
}

// MemberKind is the kind of a member, as a phrase for messages.
type MemberKind string

const (
	IsText     MemberKind = "a string that is not empty"
	IsLink     MemberKind = "an absolute http or https URL"
	IsNumber   MemberKind = "a number"
	IsFraction MemberKind = "a number from 0 to 1"
	IsCount    MemberKind = "a whole number of at least 1"
	IsObject   MemberKind = "an object"
	IsList     MemberKind = "an array that is not empty"
	IsStrings  MemberKind = "an array of strings"
	// for messages to a model
	IsRole    MemberKind = `"user" or "assistant"`
	IsContent MemberKind = "text, a block, or an array of blocks"
	IsContext MemberKind = `"none", "thisServer" or "allServers"`
)

// Only returns a shape with some of the members. The first required ones of names are required.
func (s Shape) Only(what string, required int, names ...string) Shape {
	s.What, s.Required = what, names[:required]
	s.Members = slices.DeleteFunc(slices.Clone(s.Members), func(m ShapeMember) bool { return !slices.Contains(names, m.Name) })
	return s
}

// Members reads each member of an object once, and checks it. A wrong member throws. Members that
// are undefined or null are omitted.
func (r *Realm) Members(s Shape, v goja.Value) map[string]goja.Value {
	o, ok := v.(*goja.Object)
	if !ok || jsvalue.KindOf(o) != jsvalue.Plain {
		panic(r.TypeError(s.What + ": an object is needed, with " + s.names()))
	}
	found := map[string]goja.Value{}
	for _, name := range o.Keys() {
		r.Proceed()
		old := name
		if now, deprecated := s.Deprecated[name]; deprecated {
			name = now
		}
		i := slices.IndexFunc(s.Members, func(m ShapeMember) bool { return m.Name == name })
		if i < 0 {
			panic(r.TypeError(s.unknown(name)))
		}
		member := o.Get(old)
		if IsNothing(member) {
			continue
		}
		if found[name] != nil {
			panic(r.TypeError(s.What + ": " + name + " is given twice, by two names of it"))
		}
		if old != name {
			r.Caller.Warn(s.What + ": " + old + " is deprecated; write " + name)
		}
		if kind := s.Members[i].Kind; !r.matchesKind(member, kind) {
			panic(r.TypeError(s.What + ": " + name + " must be " + string(kind)))
		}
		found[name] = member
	}
	for _, name := range s.Required {
		if found[name] == nil {
			panic(r.TypeError(s.What + ": " + name + " is missing"))
		}
	}
	return found
}

// maxSpelled limits the names of members that a message repeats, in bytes. Longer names are not
// repeated: part of a redacted value would not be recognized.
const maxSpelled = 64

func Spelled(member string) string {
	if len(member) > maxSpelled {
		return fmt.Sprintf("(a name of %d bytes)", len(member))
	}
	return member
}

// unknown returns the message for an unknown member.
func (s Shape) unknown(name string) string {
	message := s.What + ": there is no member " + Spelled(name)
	if meant, ok := s.Suggestions[name]; ok {
		return message + "; write " + meant
	}
	if guess := compiler.DidYouMean(name, s.list()); guess != "" {
		return message + "; " + guess
	}
	return message + "; there is " + s.names()
}

func (s Shape) list() []string {
	names := make([]string, len(s.Members))
	for i, m := range s.Members {
		names[i] = m.Name
	}
	return names
}

// names lists the members for a message.
func (s Shape) names() string { return enumerated(s.list()) }

// enumerated returns "a, b and c".
func enumerated(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// matchesKind reports whether a member has its kind.
func (r *Realm) matchesKind(v goja.Value, kind MemberKind) bool {
	f, numeric := jsvalue.Finite(v)
	o, object := v.(*goja.Object)
	switch kind {
	case IsText:
		s, ok := v.(goja.String)
		return ok && s.Length() > 0
	case IsLink:
		_, ok := r.Link(v)
		return ok
	case IsNumber:
		return numeric
	case IsFraction:
		return numeric && f >= 0 && f <= 1
	case IsCount:
		return numeric && f >= 1 && f == float64(int32(f))
	case IsObject:
		return object && jsvalue.KindOf(o) == jsvalue.Plain
	case IsList:
		return object && jsvalue.KindOf(o) == jsvalue.Array && jsvalue.LengthOf(o) > 0
	case IsStrings:
		return object && jsvalue.KindOf(o) == jsvalue.Array && r.onlyTexts(o)
	case IsRole:
		return isOneOf(v, "user", "assistant")
	case IsContext:
		return isOneOf(v, "none", "thisServer", "allServers")
	case IsContent:
		_, text := v.(goja.String)
		return text || object && (jsvalue.KindOf(o) == jsvalue.Plain || jsvalue.KindOf(o) == jsvalue.Array)
	}
	return false
}

func isOneOf(v goja.Value, texts ...string) bool {
	s, ok := v.(goja.String)
	return ok && slices.Contains(texts, s.String())
}

// Link returns the URL of a page in normalized form. v is text or a URL.
func (r *Realm) Link(v goja.Value) (string, bool) {
	o, object := v.(*goja.Object)
	if _, ok := r.States[o].(*urlObject); object && !ok {
		return "", false
	}
	u, err := weburl.Parse(v.String(), nil)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	return u.String(), true
}

func (r *Realm) onlyTexts(o *goja.Object) bool {
	for i := range jsvalue.LengthOf(o) {
		r.Proceed()
		if _, ok := o.Get(Index(i)).(goja.String); !ok {
			return false
		}
	}
	return true
}

// options checks the options of a function: an object with members from names only, or nothing.
func (r *Realm) options(what string, v goja.Value, names ...string) goja.Value {
	if IsNothing(v) {
		return goja.Undefined()
	}
	o, ok := v.(*goja.Object)
	if !ok {
		panic(r.TypeError(what + ": the options must be an object"))
	}
	for _, name := range o.Keys() {
		r.Proceed()
		if !slices.Contains(names, name) {
			panic(r.TypeError(what + ": there is no such option; there is " + strings.Join(names, ", ")))
		}
	}
	return o
}

// EachOption calls read for each member of an options object that is neither undefined nor null.
func (r *Realm) EachOption(what string, v goja.Value, known []string, read func(name string, v goja.Value)) {
	if IsNothing(v) {
		return
	}
	options, ok := v.(*goja.Object)
	if !ok {
		panic(r.TypeError(what + ": the options must be an object"))
	}
	for _, name := range options.Keys() {
		r.Proceed()
		value := options.Get(name)
		switch {
		case IsNothing(value):
		case !slices.Contains(known, name):
			panic(r.TypeError(what + ": there is no option " + name + "; there are " + enumerated(known)))
		default:
			read(name, value)
		}
	}
}

// StringArgument returns an argument that must be a string, or throws message.
func (r *Realm) StringArgument(v goja.Value, message string) string {
	if _, ok := v.(goja.String); !ok {
		panic(r.TypeError(message))
	}
	return v.String()
}

// textArgument returns an argument that must be text, of at most 16 MiB.
func (r *Realm) textArgument(what string, v goja.Value) string {
	if _, ok := v.(goja.String); !ok {
		panic(r.TypeError(what + ": the text must be a string"))
	}
	return r.bounded(v).String()
}

// Option returns a member of an options object; undefined if there is none.
func Option(options goja.Value, name string) goja.Value {
	o, ok := options.(*goja.Object)
	if !ok {
		return goja.Undefined()
	}
	if v := o.Get(name); v != nil {
		return v
	}
	return goja.Undefined()
}
