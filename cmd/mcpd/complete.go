package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
)

// completionPatience is how long a shell waits for a server.
const completionPatience = 2 * time.Second

// completeFolder completes the one folder that a verb takes.
func completeFolder(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// refuseOtherShells makes the verb completion refuse shells that it has no
// script for; on its own it would print its help and exit with 0.
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
			return usage("there is no completion for %q; there is %s", args[0], strings.Join(shells, ", "))
		}
		return cmd.Help()
	}
}

// completeTools completes names of tools, and behind the first the names of its
// arguments: those of the files, or of the server that call names unless it is
// nil. What cannot be read completes to nothing.
func completeTools(e env, f *files, call *callFlags) cobra.CompletionFunc {
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

// listed returns the tools of the files, none where they have mistakes.
func (f *files) listed(ctx context.Context, e env) (tools []remoteTool) {
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

// namesFor returns the tools that are not given yet.
func namesFor(tools []remoteTool, given []string) []cobra.Completion {
	var names []cobra.Completion
	for _, tool := range tools {
		if !slices.Contains(given, tool.Name) {
			names = append(names, cobra.CompletionWithDesc(tool.Name, summaryOf(tool.Description)))
		}
	}
	return names
}

// argumentsFor returns the beginnings of the arguments that are not given yet.
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
