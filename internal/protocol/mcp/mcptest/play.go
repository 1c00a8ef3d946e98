package mcptest

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// Link is a client's end of a transport.
type Link interface {
	// Send sends one text. Transports without headers ignore them.
	Send(header http.Header, text string)
	// Lines carries what the server sends, a message each; before the answer
	// to a request that HTTP refused, the line "HTTP" and the status.
	Lines() <-chan string
	// Close ends the link and closes Lines.
	Close()
}

const (
	// patience is how long Play waits for a line that does not come.
	patience = 10 * time.Second
	// silence is how long nothing comes before an update takes it that the
	// server has said all.
	silence = 300 * time.Millisecond
)

// Play plays all transcripts in dir that are for the kind of transport, "http" or
// "stream", each against a server of its own with [Tools] and [Items]. With update, what
// the server says is written into the files, instead of being compared: by the
// transport of kind "http" where a transcript is for both.
func Play(t *testing.T, dir, kind string, update bool, dial func(t *testing.T, s *mcp.Server) Link) {
	for _, script := range load(t, dir, kind) {
		name := strings.TrimSuffix(filepath.Base(script.path), ".txtar")
		t.Run(name, func(t *testing.T) {
			p := player{t: t, kind: kind, backend: New(Tools()...)}
			p.backend.items = Items()
			p.server = mcp.New(p.serve(script), mcp.Options{Quiet: time.Millisecond, PageSize: 5})
			p.link = dial(t, p.server)
			p.update = update && (kind == "http" || script.over == kind)
			got := p.play(script)
			if err := p.server.Drain(t.Context()); err != nil {
				t.Errorf("drain: %v", err)
			}
			if p.update {
				if err := os.WriteFile(script.path, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

type player struct {
	t       *testing.T
	kind    string
	backend *Backend
	tasks   *TaskBackend // nil when the transcript is about none
	server  *mcp.Server
	link    Link
	update  bool
	ids     ids
}

// serve returns what the transcript is played against.
func (p *player) serve(script transcript) mcp.Backend {
	if !strings.Contains(script.prose, "\nWith: tasks\n") {
		return p.backend
	}
	p.tasks = NewTaskBackend(p.backend, Tools()...)
	return p.tasks
}

// play returns the transcript as it went.
func (p *player) play(script transcript) transcript {
	got := script
	got.turns = slices.Clone(script.turns)
	for i, turn := range script.turns {
		verb, name, _ := strings.Cut(turn.who, " ")
		switch {
		case verb == "publish":
			p.publish(name)
		case verb == "touch":
			p.backend.Touch(name)
		case verb == "finish":
			p.tasks.Finish(name, Text("done"))
		case verb == "break":
			p.tasks.Finish(name, call.Result{Err: &call.Error{Code: call.ExecutionError, Message: "it broke"}})
		case verb == "lose":
			p.tasks.Finish(name, call.Result{Err: &call.Error{RPC: &call.RPCError{Code: -32603, Message: "the server was restarted"}}})
		case turn.who == "drain":
			draining := make(chan error, 1)
			go func() { draining <- p.server.Drain(p.t.Context()) }()
			defer func() { <-draining }()
		case turn.who == "client":
			texts, headers := turn.messages()
			for j, text := range texts {
				p.link.Send(headers[j], p.ids.real(text))
			}
		case p.update:
			got.turns[i].lines = p.hear()
		default:
			p.expect(turn.lines)
		}
	}
	p.link.Close()
	for line := range p.link.Lines() {
		p.t.Errorf("the server also said\n%s", line)
	}
	return got
}

// hear returns what the server says until it is silent.
func (p *player) hear() (lines []string) {
	for {
		select {
		case line, ok := <-p.link.Lines():
			if !ok {
				return lines
			}
			lines = append(lines, p.ids.named(line))
		case <-time.After(silence):
			return lines
		}
	}
}

// expect compares what the server says with the lines of the transcript.
func (p *player) expect(want []string) {
	for _, line := range want {
		if strings.HasPrefix(line, "HTTP ") && p.kind != "http" {
			continue
		}
		select {
		case said, ok := <-p.link.Lines():
			if !ok {
				p.t.Fatalf("the link was closed; want\n%s", line)
			}
			if said = p.ids.named(said); said != line {
				p.t.Errorf("the server said\n%s\nwant\n%s", said, line)
			}
		case <-time.After(patience):
			p.t.Fatalf("the server is silent; want\n%s", line)
		}
	}
}

// publish publishes what has a name: "fewer" tools, those that are "asking", "blocks",
// "same", which changes nothing, or "no resources", "no templates" and "no prompts".
func (p *player) publish(name string) {
	switch name {
	case "fewer":
		p.backend.Publish(Tools()[:2]...)
	case "asking":
		p.backend.Publish(append(Tools(), Asking()...)...)
		p.backend.PublishItems(append(Items(), AskingItems()...)...)
	case "blocks":
		p.backend.Publish(append(Tools(), Blocks()...)...)
		p.backend.PublishItems(append(Items(), BlockItems()...)...)
	case "same":
		p.backend.Publish(Tools()...)
	case "no resources":
		p.backend.PublishItems(without(call.Resources)...)
	case "no templates":
		p.backend.PublishItems(without(call.Templates)...)
	case "no prompts":
		p.backend.PublishItems(without(call.Prompts)...)
	default:
		p.t.Fatalf("nothing is called %q", name)
	}
}

// without returns the items that are not of the kind.
func without(k call.Kind) []Item {
	return slices.DeleteFunc(Items(), func(i Item) bool { return i.Kind == k })
}
