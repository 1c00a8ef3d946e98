package grant

import (
	"cmp"
	"strconv"
	"strings"
)

func (f *facts) http(g HTTP) {
	of := "http." + g.Name
	f.there(of, "")
	f.any(Fact{Of: of, Option: "hosts", Pattern: true}, g.Hosts...)
	f.any(Fact{Of: of, Option: "methods"}, orElse(g.Methods, "GET", "HEAD")...)
	f.any(Fact{Of: of, Option: "paths", Pattern: true}, orElse(g.Paths, "*")...)
	f.when(g.PrivateNetworks, Fact{Of: of, Option: "private_networks"})
	f.add(Fact{Of: of, Option: "redirects", Sense: UpTo, Value: strconv.Itoa(g.Redirects), Amount: float64(g.Redirects)})
	for _, h := range g.Headers {
		part := `header "` + strings.ToLower(h.Name) + `"`
		f.there(of, part)
		f.value(of, part, "value", h.Value)
	}
	f.size(of, "max_response", cmp.Or(g.MaxResponse, DefaultMaxResponse))
	f.add(TimeFact(of, "timeout", g.Timeout))
}

func (f *facts) fs(g FS, base string) {
	of := "fs." + g.Name
	f.there(of, "")
	f.add(Fact{Of: of, Option: "root", Value: place(g.Root, base, g.Relative), Place: of + ".root"})
	f.when(g.Write, Fact{Of: of, Option: "mode", Value: "rw"})
	file, total := g.Bounds()
	f.size(of, "max_file", file)
	f.size(of, "max_total", total)
}

func (f *facts) kv(g KV) {
	of := "kv." + g.Name
	f.there(of, "")
	f.add(Fact{Of: of, Option: "scope", Value: g.Scope, Place: of + ".scope"})
	f.add(TimeFact(of, "ttl", g.TTL))
	f.number(of, "max_keys", g.MaxKeys)
	f.size(of, "max_value", g.MaxValue)
	f.size(of, "max_total", g.MaxTotal)
}

func (f *facts) exec(g Exec) {
	of := "exec." + g.Name
	f.there(of, "")
	f.add(Fact{Of: of, Option: "path", Value: g.Path, Place: of + ".path"})
	f.add(Fact{Of: of, Option: "argv", Sense: Judged, Value: string(encode(g.Argv))})
	for _, p := range g.Params {
		part := `param "` + p.Name + `"`
		f.there(of, part)
		f.add(Fact{Of: of, Part: part, Option: "pattern", Sense: Judged, Value: p.Pattern})
		f.add(Fact{Of: of, Part: part, Option: "max_length", Sense: UpTo, Value: strconv.Itoa(p.MaxLength), Amount: float64(p.MaxLength)})
	}
	for _, v := range g.Env {
		part := `env "` + v.Name + `"`
		f.there(of, part)
		f.value(of, part, "value", v.Value)
	}
	f.add(TimeFact(of, "timeout", g.Timeout))
	f.size(of, "max_output", g.MaxOutput)
	f.number(of, "concurrency", g.Concurrency)
}

func (f *facts) sql(g SQL, base string) {
	of := "sql." + g.Name
	f.there(of, "")
	f.add(Fact{Of: of, Option: "driver", Value: g.Driver, Place: of + ".driver"})
	if g.Path != "" {
		f.add(Fact{Of: of, Option: "path", Value: place(g.Path, base, g.Relative), Place: of + ".path"})
	}
	f.when(g.Address != "", Fact{Of: of, Option: "address", Value: g.Address, Place: of + ".address"})
	f.value(of, "", "dsn", g.DSN)
	f.when(g.Chosen, Fact{Of: of, Option: "files that calls choose"})
	f.any(Fact{Of: of, Option: "glob"}, g.Glob...)
	f.when(g.Write, Fact{Of: of, Option: "mode", Value: "rw"})
	f.number(of, "max_rows", g.MaxRows)
	for _, s := range g.Statements {
		part := `statement "` + s.Name + `"`
		f.there(of, part)
		f.add(Fact{Of: of, Part: part, Option: "query", Sense: Judged, Value: s.Query})
	}
}

func (f *facts) module(g Module) {
	of := "modules." + g.Name
	f.there(of, "")
	f.add(Fact{Of: of, Option: "options", Sense: Judged, Value: string(g.Options)})
}

func (f *facts) ask(g Ask) {
	f.there("ask", "")
	for _, name := range g.Names() {
		f.add(Fact{Of: "ask", Option: name, Place: "ask." + name})
	}
	f.number("ask", "max_rounds", g.MaxRounds)
	f.number("ask", "max_tokens", g.MaxTokens)
}

func orElse(list []string, otherwise ...string) []string {
	if len(list) == 0 {
		return otherwise
	}
	return list
}
