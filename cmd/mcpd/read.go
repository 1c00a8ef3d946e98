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
		Long: `Read prints the content of a resource; binary content is printed unchanged. URI names a
resource, a file in a resource directory, or a match of a template. With --url it asks
a running server.`,
		Example: `  mcpd read runbook://restart
  mcpd read image://pixel > pixel.gif
  mcpd read crm://customers/C-1042 --url http://127.0.0.1:8080`,
		Args: needs(1, 1, "name one resource by its URI: mcpd read URI; mcpd list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := call.Request{Kind: call.Resources, Name: args[0]}
			return f.show(cmd.Context(), e, "resources/read", request, map[string]any{"uri": args[0]}, printContents)
		},
	}
	cmd.ValidArgsFunction = completeURIs(e, &f)
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print the MCP result or error as JSON")
	f.add(cmd, "ask")
	return cmd
}

// show reads a resource or prompt from the server or from the files, and prints it.
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

// reply is an MCP result or an error.
type reply struct {
	result json.RawMessage
	failed answer
}

// print prints the error, the raw result, or the result for people.
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

// resourceContents is the content of a resource.
type resourceContents struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     []byte  `json:"blob"`
}

// printContents prints the contents of a resource in order. It ends text with a line
// end, so that a terminal prompt starts on its own line.
func printContents(w io.Writer, result json.RawMessage) error {
	var read struct{ Contents []resourceContents }
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

// endLine adds a line end to non-empty text without one.
func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
