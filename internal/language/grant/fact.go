package grant

import (
	"cmp"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Direction says how the presence or amount of a [Fact] affects privilege.
type Direction int

const (
	// Increases means that the presence gives privilege, such as a host or a variable.
	Increases Direction = iota
	// Restricts means that the presence limits privilege, such as a policy or a pattern.
	Restricts
	// Describes means that the presence describes a value that is also allowed without it, such as a
	// member of an output that may have other members. Its removal counts as more privilege.
	Describes
	// Limit means that a larger amount is more privilege.
	Limit
	// Opaque means that only a reader can judge the value, such as an expression or a
	// statement. Any change counts as more privilege. The value is never shown.
	Opaque
	// Neutral means that the fact does not affect privilege. The value is never shown.
	Neutral
)

// Fact is one comparable property of a grant. The facts of a grant describe it completely.
type Fact struct {
	// Object is the granted object, such as "http.crm".
	Object string
	// Part is a part of the object that is added and removed as a whole, such as a header.
	Part string
	// Option is the described option; empty means that the object or part exists.
	Option    string
	Direction Direction
	// Value is an element of the option's list, or the formatted amount.
	Value string
	// Pattern means that * in Value is a wildcard.
	Pattern bool
	// Amount is the amount of a [Limit]: +Inf means no limit, NaN means unknown.
	Amount float64
	// RangeKey is the key of the position in the ranges of the definition, if it is not Object.
	RangeKey string
}

// Facts returns the facts of the set, in the order of the file. Relative paths are joined to
// base, which is absolute or empty.
func (s Set) Facts(base string) []Fact {
	var f facts
	for _, g := range s.HTTP {
		f.http(g)
	}
	for _, g := range s.FS {
		f.fs(g, base)
	}
	for _, name := range s.Env {
		f.add(Fact{Object: "env", Option: "names", Value: name, RangeKey: "env." + name})
	}
	for _, name := range s.Secrets {
		f.add(Fact{Object: "secrets", Option: secretsOption, Value: name, RangeKey: "secrets." + name})
	}
	for _, g := range s.KV {
		f.kv(g)
	}
	for _, g := range s.Exec {
		f.exec(g)
	}
	for _, g := range s.SQL {
		f.sql(g, base)
	}
	for _, name := range s.Call {
		f.add(Fact{Object: "call", Option: "tools", Value: name, Pattern: true})
	}
	for _, g := range s.Modules {
		f.module(g)
	}
	if s.Ask != nil {
		f.ask(*s.Ask)
	}
	return f
}

// SecretNames returns the names of the granted secrets, in the order of the file.
func (s Set) SecretNames() []string {
	var names []string
	for _, f := range s.Facts("") {
		if f.Option == secretsOption {
			names = append(names, f.Value)
		}
	}
	return names
}

// secretsOption is the option of facts that name secrets.
const secretsOption = "secrets"

// facts collects the facts of one set.
type facts []Fact

func (f *facts) add(fact Fact) { *f = append(*f, fact) }

// present adds the fact that an object, or a part of it, is granted.
func (f *facts) present(of, part string) { f.add(Fact{Object: of, Part: part}) }

// each adds a fact for each value.
func (f *facts) each(like Fact, values ...string) {
	for _, like.Value = range values {
		f.add(like)
	}
}

// addIf adds a fact if the condition holds.
func (f *facts) addIf(is bool, fact Fact) {
	if is {
		f.add(fact)
	}
}

// size adds a limit in bytes.
func (f *facts) size(of, option string, bytes int64) { f.add(SizeFact(of, option, bytes)) }

func (f *facts) number(of, option string, n int) { f.add(CountFact(of, option, n)) }

// value adds text with secrets: the names of the secrets, and the text as opaque.
func (f *facts) value(of, part, option string, v Value) {
	f.each(Fact{Object: of, Part: part, Option: secretsOption}, v.secrets()...)
	f.add(Fact{Object: of, Part: part, Option: option, Direction: Opaque, Value: string(encode(v))})
}

// CountFact returns a limit on a count; 0 means unknown.
func CountFact(of, option string, n int) Fact {
	if n == 0 {
		return Fact{Object: of, Option: option, Direction: Limit, Value: "the default", Amount: math.NaN()}
	}
	return Fact{Object: of, Option: option, Direction: Limit, Value: strconv.Itoa(n), Amount: float64(n)}
}

// SizeFact returns a limit in bytes; 0 means unknown.
func SizeFact(of, option string, bytes int64) Fact {
	f := Fact{Object: of, Option: option, Direction: Limit, Amount: float64(bytes)}
	switch {
	case bytes == 0:
		f.Value, f.Amount = "the default", math.NaN()
	case bytes%(1<<20) == 0:
		f.Value = strconv.FormatInt(bytes>>20, 10) + "MiB"
	case bytes%(1<<10) == 0:
		f.Value = strconv.FormatInt(bytes>>10, 10) + "KiB"
	default:
		f.Value = strconv.FormatInt(bytes, 10)
	}
	return f
}

// TimeFact returns a time limit; 0 means no limit.
func TimeFact(of, option string, d time.Duration) Fact {
	f := Fact{Object: of, Option: option, Direction: Limit, Value: d.String(), Amount: float64(d)}
	if d == 0 {
		f.Value, f.Amount = "no bound", math.Inf(1)
	}
	return f
}

// resolvePath returns a path with forward slashes, joined to base if it is relative.
func resolvePath(path, base string, relative bool) string {
	if !relative || base == "" {
		return filepath.ToSlash(path)
	}
	from, err := filepath.Rel(base, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return "./" + filepath.ToSlash(from)
}

// secrets returns the names of the secrets in a value, in order.
func (v Value) secrets() []string {
	var names []string
	v.EachSecret(func(name string) { names = append(names, name) })
	return names
}

func (f *facts) http(g HTTP) {
	of := "http." + g.Name
	f.present(of, "")
	f.each(Fact{Object: of, Option: "hosts", Pattern: true}, g.Hosts...)
	f.each(Fact{Object: of, Option: "methods"}, orDefault(g.Methods, "GET", "HEAD")...)
	f.each(Fact{Object: of, Option: "paths", Pattern: true}, orDefault(g.Paths, "*")...)
	f.addIf(g.PrivateNetworks, Fact{Object: of, Option: "private_networks"})
	f.add(Fact{Object: of, Option: "redirects", Direction: Limit, Value: strconv.Itoa(g.Redirects), Amount: float64(g.Redirects)})
	for _, h := range g.Headers {
		part := `header "` + strings.ToLower(h.Name) + `"`
		f.present(of, part)
		f.value(of, part, "value", h.Value)
	}
	f.size(of, "max_response", cmp.Or(g.MaxResponse, DefaultMaxResponse))
	f.add(TimeFact(of, "timeout", g.Timeout))
}

func (f *facts) fs(g FS, base string) {
	of := "fs." + g.Name
	f.present(of, "")
	f.add(Fact{Object: of, Option: "root", Value: resolvePath(g.Root, base, g.Relative), RangeKey: of + ".root"})
	f.addIf(g.Write, Fact{Object: of, Option: "mode", Value: "rw"})
	file, total := g.Limits()
	f.size(of, "max_file", file)
	f.size(of, "max_total", total)
}

func (f *facts) kv(g KV) {
	of := "kv." + g.Name
	f.present(of, "")
	f.add(Fact{Object: of, Option: "scope", Value: g.Scope, RangeKey: of + ".scope"})
	f.add(TimeFact(of, "ttl", g.TTL))
	f.number(of, "max_keys", g.MaxKeys)
	f.size(of, "max_value", g.MaxValue)
	f.size(of, "max_total", g.MaxTotal)
}

func (f *facts) exec(g Exec) {
	of := "exec." + g.Name
	f.present(of, "")
	f.add(Fact{Object: of, Option: "path", Value: g.Path, RangeKey: of + ".path"})
	f.add(Fact{Object: of, Option: "argv", Direction: Opaque, Value: string(encode(g.Argv))})
	for _, p := range g.Params {
		part := `param "` + p.Name + `"`
		f.present(of, part)
		f.add(Fact{Object: of, Part: part, Option: "pattern", Direction: Opaque, Value: p.Pattern})
		f.add(Fact{Object: of, Part: part, Option: "max_length", Direction: Limit, Value: strconv.Itoa(p.MaxLength), Amount: float64(p.MaxLength)})
	}
	for _, v := range g.Env {
		part := `env "` + v.Name + `"`
		f.present(of, part)
		f.value(of, part, "value", v.Value)
	}
	f.add(TimeFact(of, "timeout", g.Timeout))
	f.size(of, "max_output", g.MaxOutput)
	f.number(of, "concurrency", g.Concurrency)
}

func (f *facts) sql(g SQL, base string) {
	of := "sql." + g.Name
	f.present(of, "")
	f.add(Fact{Object: of, Option: "driver", Value: g.Driver, RangeKey: of + ".driver"})
	if g.Path != "" {
		f.add(Fact{Object: of, Option: "path", Value: resolvePath(g.Path, base, g.Relative), RangeKey: of + ".path"})
	}
	f.addIf(g.Address != "", Fact{Object: of, Option: "address", Value: g.Address, RangeKey: of + ".address"})
	f.value(of, "", "dsn", g.DSN)
	f.addIf(g.PathFromCall, Fact{Object: of, Option: "files that calls choose"})
	f.each(Fact{Object: of, Option: "glob"}, g.Glob...)
	f.addIf(g.Write, Fact{Object: of, Option: "mode", Value: "rw"})
	f.number(of, "max_rows", g.MaxRows)
	for _, s := range g.Statements {
		part := `statement "` + s.Name + `"`
		f.present(of, part)
		f.add(Fact{Object: of, Part: part, Option: "query", Direction: Opaque, Value: s.Query})
	}
}

func (f *facts) module(g Module) {
	of := "modules." + g.Name
	f.present(of, "")
	f.add(Fact{Object: of, Option: "options", Direction: Opaque, Value: string(g.Options)})
}

func (f *facts) ask(g Ask) {
	f.present("ask", "")
	for _, name := range g.Names() {
		f.add(Fact{Object: "ask", Option: name, RangeKey: "ask." + name})
	}
	f.number("ask", "max_rounds", g.MaxRounds)
	f.number("ask", "max_tokens", g.MaxTokens)
}

func orDefault(list []string, otherwise ...string) []string {
	if len(list) == 0 {
		return otherwise
	}
	return list
}
