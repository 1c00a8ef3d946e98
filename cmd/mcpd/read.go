package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

func newRead(e env) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "read URI",
		Short: "Read a resource from the command line",
		Long: `Read prints what a resource holds, bytes as they are. The URI is that of a
resource or of a file of a folder, or one that a template matches. With --url it
asks a running server.`,
		Example: `  mcpd read runbook://restart
  mcpd read image://pixel > pixel.gif
  mcpd read crm://customers/C-1042 --url http://127.0.0.1:8080`,
		Args: needs(1, 1, "name one resource by its URI: mcpd read URI; mcpd list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := call.Request{Kind: call.Resources, Name: args[0]}
			return f.show(cmd.Context(), e, "resources/read", request, map[string]any{"uri": args[0]}, printContents)
		},
	}
	f.add(cmd, "ask")
	cmd.ValidArgsFunction = completeURIs(e, &f)
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print the result of MCP, or the error, as JSON")
	return cmd
}

// show asks the server, by a method of MCP, or the files for what is no tool, and prints it.
func (f *callFlags) show(ctx context.Context, e env, method string, request call.Request, params map[string]any, show func(io.Writer, json.RawMessage) error) error {
	if f.url != "" {
		server, err := f.remote(e)
		if err != nil {
			return err
		}
		r, err := server.ask(ctx, method, request.Name, params)
		if err != nil {
			return f.unanswered(e, err)
		}
		return r.print(e, f.raw, show)
	}
	agent := "mcpd-read"
	if request.Kind == call.Prompts {
		agent = "mcpd-prompt"
	}
	result, err := f.run(ctx, e, agent, nil, func(*engine.Snapshot) (call.Request, error) { return request, nil })
	if err != nil {
		return err
	}
	r := reply{result: result.Reply}
	if result.Err != nil {
		r = reply{failed: f.answerOf(result)}
	}
	return r.print(e, f.raw, show)
}

// reply is what came of asking for what is no tool: a result of MCP, or why
// there is none.
type reply struct {
	result json.RawMessage
	failed answer
}

// print prints the error, the result as it is, or the result for people.
func (r reply) print(e env, raw bool, show func(io.Writer, json.RawMessage) error) error {
	switch {
	case r.failed.Error != "":
		return printAnswer(e, r.failed, raw)
	case raw:
		return printJSON(e.text(), r.result)
	default:
		return show(e.text(), r.result)
	}
}

// held is what a resource holds.
type held struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     []byte  `json:"blob"`
}

// printContents prints the contents of a resource one after the other. Text
// ends with a line end, so that what a terminal prints next stands below it.
func printContents(w io.Writer, result json.RawMessage) error {
	var read struct{ Contents []held }
	if err := json.Unmarshal(result, &read); err != nil {
		return fmt.Errorf("read contents: %w", err)
	}
	for _, c := range read.Contents {
		content := c.Blob
		if c.Text != nil {
			content = []byte(endLine(*c.Text))
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return nil
}

// endLine ends a text with a line end, unless it is empty.
func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
