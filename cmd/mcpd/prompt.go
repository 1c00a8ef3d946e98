package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
)

func newPrompt(e env) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "prompt NAME [ARGUMENT=VALUE...]",
		Short: "Print the messages of a prompt",
		Long: `Prompt prints the messages that a client would get of a prompt, each below the
role that it is of. With --url it asks a running server.`,
		Example: `  mcpd prompt incident_review id=17
  mcpd prompt incident_review --json '{"id": "17"}' --raw
  mcpd prompt incident_review id=17 --url http://127.0.0.1:8080`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name a prompt: mcpd prompt NAME [ARGUMENT=VALUE...]; mcpd list shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkJSON(cmd); err != nil {
				return err
			}
			return prompt(cmd.Context(), e, &f, args[0], args[1:])
		},
	}
	f.add(cmd, "ask")
	f.addArguments(cmd, "a prompt")
	cmd.ValidArgsFunction = completePrompts(e, &f)
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print the result of MCP, or the error, as JSON")
	return cmd
}

func prompt(ctx context.Context, e env, f *callFlags, name string, pairs []string) error {
	arguments, err := textsOf(f.args, pairs)
	if err != nil {
		return err
	}
	if f.url != "" {
		server, err := f.remote(e)
		if err != nil {
			return err
		}
		r, err := server.ask(ctx, "prompts/get", name, map[string]any{"name": name, "arguments": arguments})
		if err != nil {
			return f.unanswered(e, err)
		}
		return r.print(e, f.raw, printMessages)
	}
	result, err := f.run(ctx, e, "mcpd-prompt", func(*engine.Snapshot) (engine.Request, error) {
		return engine.Request{Kind: engine.Prompts, Name: name, Arguments: arguments}, nil
	})
	if err != nil {
		return err
	}
	return f.replyOf(result).print(e, f.raw, printMessages)
}

// printMessages prints each message below its role.
func printMessages(w io.Writer, result json.RawMessage) error {
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
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "%s:\n%s", m.Role, endLine(m.Content.text())); err != nil {
			return err
		}
	}
	return nil
}

// block is what a message holds.
type block struct {
	Type, Text, Name, URI string
	MIMEType              string `json:"mimeType"`
	Data                  []byte
	Resource              held
}

// text returns a block as people read it: of what is no text, what it is.
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

// kindAndSize says what content is that cannot be printed; size is of bytes.
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
