package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/call"
)

// systemPrompt is the name of the prompt that explains agent code (package codemode).
const systemPrompt = "code_mode"

func newPrompt(e env) *cobra.Command {
	var f callFlags
	var budget int
	cmd := &cobra.Command{
		Use:   "prompt [NAME] [ARGUMENT=VALUE...]",
		Short: "Print the messages of a prompt",
		Long: `Prompt prints the messages that a client gets for a prompt, each below its role. With
--url it asks a running server.

Without a name it prints the system prompt for agents that write code, if mcpd.hcl has
a codeact block. It explains how to write code and declares the tools in TypeScript.
--budget limits its tokens; the names of all tools always stay.`,
		Example: `  mcpd prompt incident_review id=17
  mcpd prompt --budget 4000
  mcpd prompt incident_review --json '{"id": "17"}' --raw
  mcpd prompt incident_review id=17 --url http://127.0.0.1:8080`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkJSON(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("budget") {
				if budget < 1 || len(args) > 0 && args[0] != systemPrompt {
					return usageError("--budget takes a number of tokens, and applies only to the system prompt for agent code")
				}
				args = append(args, fmt.Sprintf("budget=%d", budget))
			}
			if len(args) == 0 || strings.Contains(args[0], "=") {
				return prompt(cmd.Context(), e, &f, systemPrompt, args, false)
			}
			return prompt(cmd.Context(), e, &f, args[0], args[1:], true)
		},
	}
	f.addArguments(cmd, "a prompt")
	cmd.ValidArgsFunction = completePrompts(e, &f)
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print the MCP result or error as JSON")
	cmd.Flags().IntVar(&budget, "budget", 0, "limit the system prompt for agent code to `TOKENS`")
	f.add(cmd, "ask")
	return cmd
}

func prompt(ctx context.Context, e env, f *callFlags, name string, pairs []string, roles bool) error {
	arguments, err := textsOf(f.args, pairs)
	if err != nil {
		return err
	}
	request := call.Request{Kind: call.Prompts, Name: name, Arguments: arguments}
	return f.show(ctx, e, "prompts/get", request, map[string]any{"name": name, "arguments": arguments}, func(w io.Writer, result json.RawMessage) error { return printMessages(w, result, roles) })
}

// printMessages prints messages, each below its role if roles is set.
func printMessages(w io.Writer, result json.RawMessage, roles bool) error {
	var got struct {
		Messages []struct {
			Role    string
			Content block
		}
	}
	if err := json.Unmarshal(result, &got); err != nil {
		return fmt.Errorf("read messages: %w", err)
	}
	for i, m := range got.Messages {
		text := endLine(m.Content.text())
		if roles {
			text = m.Role + ":\n" + text
		}
		if roles && i > 0 {
			text = "\n" + text
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// block is a content block of a message.
type block struct {
	Type, Text, Name, URI string
	MIMEType              string `json:"mimeType"`
	Data                  []byte
	Resource              resourceContents
}

// text returns a text block as it is, and a description of any other block.
func (b *block) text() string {
	switch b.Type {
	case "text":
		return b.Text
	case "resource_link":
		return fmt.Sprintf("(a link to %s: %s)", b.URI, b.Name)
	case "resource":
		about := fmt.Sprintf("(the resource %s%s)", b.Resource.URI, kindAndSize(b.Resource.MIMEType, b.Resource.Blob))
		if b.Resource.Text != nil {
			about += "\n" + *b.Resource.Text
		}
		return about
	default:
		return fmt.Sprintf("(%s%s)", b.Type, kindAndSize(b.MIMEType, b.Data))
	}
}

// kindAndSize describes binary content by its type and size.
func kindAndSize(mimeType string, bytes []byte) string {
	var about strings.Builder
	if mimeType != "" {
		about.WriteString(", " + mimeType)
	}
	if len(bytes) > 0 {
		about.WriteString(", " + count(len(bytes), "byte"))
	}
	return about.String()
}
