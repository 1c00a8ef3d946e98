package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// completionPatience is the timeout of a request to a server during shell completion.
const completionPatience = 2 * time.Second

// completeFolder completes the directory that a verb takes.
func completeFolder(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// refuseOtherShells makes the completion verb reject unknown shells. By default it
// prints its help and exits with 0.
func refuseOtherShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	verb, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	var shells []string
	for _, shell := range verb.Commands() {
		shells = append(shells, shell.Name())
	}
	verb.Use, verb.Args, verb.DisableFlagsInUseLine = "completion SHELL", cobra.ArbitraryArgs, true
	verb.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usageError("no completion for %q; supported shells: %s", args[0], strings.Join(shells, ", "))
		}
		return cmd.Help()
	}
}

// completeVerbs completes the verbs that help takes.
func completeVerbs(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	parent, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, verb := range parent.Commands() {
		if verb.IsAvailableCommand() && strings.HasPrefix(verb.Name(), typed) {
			found = append(found, cobra.CompletionWithDesc(verb.Name(), verb.Short))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeTools completes the name of a tool, then the names of its arguments. Tools
// come from the files, or from the server of --url if call is not nil. Errors give no
// completions.
func completeTools(e env, f *projectFlags, call *callFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var tools []remoteTool
		if call != nil && call.url != "" {
			ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
			defer cancel()
			if server, err := call.remote(e); err == nil {
				tools, _ = server.tools(ctx)
			}
		} else {
			tools = f.listed(cmd.Context(), e)
		}
		if len(args) == 0 {
			return namesFor(tools, args), cobra.ShellCompDirectiveNoFileComp
		}
		if strings.Contains(typed, "=") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return argumentsFor(tools, args[0], args[1:]), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// listed returns the tools of the files, or none if the files have errors.
func (f *projectFlags) listed(ctx context.Context, e env) (tools []remoteTool) {
	f.loaded(ctx, e, func(s *engine.Server) {
		for _, tool := range s.Snapshot().Tools() {
			m := tool.Metadata()
			listed := remoteTool{Name: m.Name, InputSchema: m.InputSchema}
			if m.Description != nil {
				listed.Description = *m.Description
			}
			tools = append(tools, listed)
		}
	})
	return tools
}

// namesFor returns completions for the tools that are not in given.
func namesFor(tools []remoteTool, given []string) []cobra.Completion {
	var names []cobra.Completion
	for _, tool := range tools {
		if !slices.Contains(given, tool.Name) {
			names = append(names, cobra.CompletionWithDesc(tool.Name, summaryOf(tool.Description)))
		}
	}
	return names
}

// argumentsFor returns completions of the form NAME= for the arguments not in given.
func argumentsFor(tools []remoteTool, name string, given []string) []cobra.Completion {
	var names []cobra.Completion
	for _, tool := range tools {
		var schema struct {
			Properties map[string]struct {
				Description string `json:"description"`
			} `json:"properties"`
		}
		if tool.Name != name || json.Unmarshal(tool.InputSchema, &schema) != nil {
			continue
		}
		for argument, property := range schema.Properties {
			if !slices.ContainsFunc(given, func(pair string) bool { return strings.HasPrefix(pair, argument+"=") }) {
				names = append(names, cobra.CompletionWithDesc(argument+"=", summaryOf(property.Description)))
			}
		}
	}
	slices.Sort(names)
	return names
}

func completeListed(e env, f *projectFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var found []cobra.Completion
		f.loaded(cmd.Context(), e, func(s *engine.Server) {
			l := offeredBy(s.Snapshot())
			for _, group := range l.lines() {
				found = append(found, beginning(group, typed, args)...)
			}
		})
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeURIs completes the URI that read takes. A template completes to the text
// before its first variable.
func completeURIs(e env, f *callFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		resources, templates := f.offers(cmd.Context(), e, call.Resources), f.offers(cmd.Context(), e, call.Templates)
		for i, t := range templates {
			templates[i].address, _, _ = strings.Cut(t.address, "{")
		}
		found := append(beginning(resources, typed, nil), beginning(templates, typed, nil)...)
		if len(found) > 0 && len(beginning(resources, typed, nil)) == 0 {
			return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePrompts completes the name of a prompt, then the names of its arguments and
// their values.
func completePrompts(e env, f *callFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const quiet = cobra.ShellCompDirectiveNoFileComp
		if len(args) == 0 {
			return beginning(f.offers(cmd.Context(), e, call.Prompts), typed, nil), quiet
		}
		given, err := pairsOf(args[1:])
		if err != nil {
			return nil, quiet
		}
		if argument, value, found := strings.Cut(typed, "="); found {
			var values []cobra.Completion
			for _, v := range f.values(cmd.Context(), e, args[0], argument, value, given) {
				values = append(values, argument+"="+v)
			}
			return values, quiet
		}
		var names []cobra.Completion
		for _, p := range f.offers(cmd.Context(), e, call.Prompts) {
			for _, a := range p.arguments {
				if _, twice := given[a.Name]; p.address == args[0] && !twice && strings.HasPrefix(a.Name, typed) {
					names = append(names, cobra.CompletionWithDesc(a.Name+"=", summaryOf(cmp.Or(a.Description, a.Title))))
				}
			}
		}
		return names, quiet | cobra.ShellCompDirectiveNoSpace
	}
}

// beginning returns completions for the lines with an address that starts with typed
// and is not in given.
func beginning(lines []listLine, typed string, given []string) []cobra.Completion {
	var found []cobra.Completion
	for _, l := range lines {
		if strings.HasPrefix(l.address, typed) && !slices.Contains(given, l.address) {
			found = append(found, cobra.CompletionWithDesc(l.address, l.summary))
		}
	}
	return found
}

// loaded loads the files and calls show, unless the files have errors.
func (f *projectFlags) loaded(ctx context.Context, e env, show func(*engine.Server)) {
	s, err := f.open(e, engine.Options{Mode: engine.Offline})
	if err != nil {
		return
	}
	defer s.Close(ctx)
	if _, err := s.Load(ctx); err == nil {
		show(s)
	}
}

// methods maps each kind to the MCP method that lists it.
var methods = map[call.Kind]string{
	call.Resources: "resources/list", call.Templates: "resources/templates/list", call.Prompts: "prompts/list",
}

// offers returns the items of a kind, from the files or from the server of --url.
// Errors give no items.
func (f *callFlags) offers(ctx context.Context, e env, k call.Kind) (lines []listLine) {
	if f.url == "" {
		f.files.loaded(ctx, e, func(s *engine.Server) {
			l := offeredBy(s.Snapshot())
			lines = l.lines()[k]
		})
		return lines
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	server, err := f.remote(e)
	if err != nil {
		return nil
	}
	for params := map[string]any{}; params != nil; {
		r, err := server.ask(ctx, methods[k], "", params)
		if err != nil || r.result == nil {
			return lines
		}
		var more []listLine
		more, params = listedBy(r.result)
		lines = append(lines, more...)
	}
	return lines
}

// listedBy decodes a page of a list result. next holds the params for the next page,
// nil for the last page.
func listedBy(result json.RawMessage) (lines []listLine, next map[string]any) {
	type entry struct {
		Name, URI, URITemplate, Title, Description string
		Arguments                                  []engine.Argument
	}
	var page struct {
		Resources, ResourceTemplates, Prompts []entry
		NextCursor                            string
	}
	if json.Unmarshal(result, &page) != nil {
		return nil, nil
	}
	for _, o := range slices.Concat(page.Resources, page.ResourceTemplates, page.Prompts) {
		lines = append(lines, listLine{address: cmp.Or(o.URI, o.URITemplate, o.Name), summary: summaryOf(cmp.Or(o.Description, o.Title)), arguments: o.Arguments})
	}
	if page.NextCursor != "" {
		next = map[string]any{"cursor": page.NextCursor}
	}
	return lines, next
}

// values returns the completions of a prompt argument.
func (f *callFlags) values(ctx context.Context, e env, prompt, argument, typed string, given map[string]string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	var result json.RawMessage
	if f.url != "" {
		server, err := f.remote(e)
		if err != nil {
			return nil
		}
		r, err := server.ask(ctx, "completion/complete", "", map[string]any{
			"ref":      map[string]string{"type": "ref/prompt", "name": prompt},
			"argument": map[string]string{"name": argument, "value": typed}, "context": map[string]any{"arguments": given},
		})
		if err != nil {
			return nil
		}
		result = r.result
	} else if input, err := json.Marshal(map[string]any{"value": typed, "params": given}); err == nil {
		f.files.loaded(ctx, e, func(s *engine.Server) {
			request := call.Request{Kind: call.Prompts, Name: prompt, Argument: argument, Arguments: input, Caller: callerOf(e, "mcpd-prompt")}
			result = s.Execute(ctx, request).Reply
		})
	}
	var got struct{ Completion struct{ Values []string } }
	if json.Unmarshal(result, &got) != nil {
		return nil
	}
	return got.Completion.Values
}
