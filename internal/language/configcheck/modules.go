package configcheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Modules are the objects that the program which embeds mcpd gives to scripts.
type Modules interface {
	// Names returns their names, in order.
	Names() []string
	// Check says what is wrong with the arguments of a grant of one of them.
	Check(module string, options json.RawMessage) error
}

// CheckModules returns every mistake in grants of modules.
func CheckModules(config *hclfile.Config, files []*hclfile.Definitions, modules Modules) diag.List {
	var problems diag.List
	look := func(kind, name string, granted grant.Set, ranges map[string]diag.Range) {
		for _, g := range granted.Modules {
			if where, written := ranges["modules."+g.Name]; written {
				problems = append(problems, checkModule(fmt.Sprintf("%s %q", kind, name), g, where, modules)...)
			}
		}
	}
	for i := range config.Hooks {
		look("hook", config.Hooks[i].Name, config.Hooks[i].Grant, config.Hooks[i].GrantRanges)
	}
	for _, f := range files {
		eachGrant(f, look)
	}
	return problems
}

func checkModule(what string, g grant.Module, where diag.Range, modules Modules) diag.List {
	known := modules.Names()
	if !slices.Contains(known, g.Name) {
		return diag.List{{Code: "unknown-module", Range: where, Summary: fmt.Sprintf("there is no module %q", g.Name), Detail: moduleAdvice(g.Name, known)}}
	}
	if err := modules.Check(g.Name, g.Options); err != nil {
		return diag.List{{
			Code: "bad-grant", Range: where, Summary: fmt.Sprintf("%s grants the module %q with arguments that it does not take: %v", what, g.Name, err),
			Detail: "write what the module takes; its program tells",
		}}
	}
	return nil
}

// moduleAdvice says what to write for a module that there is not.
func moduleAdvice(name string, known []string) string {
	if guess := diag.DidYouMean(name, known); guess != "" {
		return guess
	}
	if len(known) == 0 {
		return "modules are objects of Go programs that embed mcpd, and this program has none; mcpd itself has http, fs, env, secrets, kv, exec, sql, call and ask"
	}
	return "there is " + strings.Join(known, ", ")
}
