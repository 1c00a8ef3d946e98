package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Listing has the offers of a server, as it lists them.
type Listing struct {
	Instructions string
	// Tools, Resources, Templates and Prompts are the entries of its lists, as JSON objects.
	Tools, Resources, Templates, Prompts []json.RawMessage
	// HasCompletions and CanSubscribe report whether the server supports completions and
	// resource subscriptions.
	HasCompletions, CanSubscribe bool
	// TTL is how long the lists may be cached; 0 if the server does not say.
	TTL time.Duration
}

// size returns the size of all entries, in bytes.
func (l *Listing) size() (n int) {
	for _, list := range [][]json.RawMessage{l.Tools, l.Resources, l.Templates, l.Prompts} {
		for _, entry := range list {
			n += len(entry)
		}
	}
	return n
}

// The limits of lists. A server may send large pages, and any number of them. Lists stay in
// memory while they are served.
const (
	maxPages   = 1000
	maxEntries = 10_000
	// maxListed bounds all lists of a server together, in bytes.
	maxListed = 16 << 20
)

// The list methods, each with the member that holds its entries.
var lists = map[string]string{
	"tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts",
}

func (c *Conn) List(ctx context.Context) (*Listing, error) {
	can := c.session.InitializeResult().Capabilities
	if can == nil {
		can = &mcp.ServerCapabilities{}
	}
	found := &Listing{Instructions: c.session.InitializeResult().Instructions, HasCompletions: can.Completions != nil}
	left := maxListed
	found.CanSubscribe = can.Resources != nil && can.Resources.Subscribe
	for _, list := range []struct {
		method string
		has    bool
		to     *[]json.RawMessage
	}{
		{"tools/list", can.Tools != nil, &found.Tools}, {"prompts/list", can.Prompts != nil, &found.Prompts},
		{"resources/list", can.Resources != nil, &found.Resources}, {"resources/templates/list", can.Resources != nil, &found.Templates},
	} {
		if !list.has {
			continue
		}
		ttl, err := c.listPages(ctx, list.method, list.to, &left)
		if err != nil && ctx.Err() != nil {
			err = c.child.withStderr(err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list.method, err)
		}
		if ttl > 0 && (found.TTL == 0 || ttl < found.TTL) {
			found.TTL = ttl
		}
	}
	return found, nil
}

// listPages reads all pages of a list, within the remaining bytes, and returns their TTL.
func (c *Conn) listPages(ctx context.Context, method string, to *[]json.RawMessage, left *int) (ttl time.Duration, err error) {
	seen := map[string]bool{}
	for cursor := ""; ; {
		reply, err := c.callSync(ctx, Request{Method: method, Name: cursor})
		if err != nil {
			return 0, err
		}
		if *left -= len(reply); *left < 0 {
			return 0, fmt.Errorf("the lists of the server are longer than %d bytes", maxListed)
		}
		var page struct {
			Entries    []json.RawMessage
			NextCursor string
			TTLMs      int64
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(reply, &members) != nil || json.Unmarshal(members[lists[method]], &page.Entries) != nil && members[lists[method]] != nil {
			return 0, errors.New("the list is invalid")
		}
		_ = json.Unmarshal(members["nextCursor"], &page.NextCursor) // a cursor that is not a string ends the list
		_ = json.Unmarshal(members["ttlMs"], &page.TTLMs)
		if *to = append(*to, page.Entries...); len(*to) > maxEntries {
			return 0, fmt.Errorf("the list has more than %d entries", maxEntries)
		}
		if age := time.Duration(page.TTLMs) * time.Millisecond; age > 0 && (ttl == 0 || age < ttl) {
			ttl = age
		}
		if cursor = page.NextCursor; cursor == "" {
			return ttl, nil
		}
		if seen[cursor] || len(seen) == maxPages {
			return 0, errors.New("the list does not end")
		}
		seen[cursor] = true
	}
}

// callSync makes a call and waits for its result. It refuses input requests.
func (c *Conn) callSync(ctx context.Context, r Request) (json.RawMessage, error) {
	rc := c.Start(ctx, r, nil)
	defer rc.Cancel(context.Canceled)
	for {
		reply, err := rc.Next(ctx)
		switch {
		case err != nil:
			return nil, err
		case reply.Error != nil:
			return nil, fmt.Errorf("%d: %w", reply.Error.Code, reply.Error)
		case reply.Result != nil:
			return reply.Result, nil
		case reply.State != "" || len(reply.InputRequests) == 0:
			return nil, errors.New("the server requests input")
		}
		refusals := map[string]InputResponse{}
		for _, q := range reply.InputRequests {
			refusals[q.Key] = InputResponse{Refusal: errNoClient.Error()}
		}
		rc.Respond(refusals)
	}
}

// requestPage requests a page of a list; the name of the request is the cursor.
func (c *Conn) requestPage(ctx context.Context, meta mcp.Meta, r Request) (err error) {
	switch r.Method {
	case "tools/list":
		_, err = c.session.ListTools(ctx, &mcp.ListToolsParams{Meta: meta, Cursor: r.Name})
	case "prompts/list":
		_, err = c.session.ListPrompts(ctx, &mcp.ListPromptsParams{Meta: meta, Cursor: r.Name})
	case "resources/list":
		_, err = c.session.ListResources(ctx, &mcp.ListResourcesParams{Meta: meta, Cursor: r.Name})
	case "resources/templates/list":
		_, err = c.session.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Meta: meta, Cursor: r.Name})
	default:
		err = fmt.Errorf("unsupported method %s", r.Method)
	}
	return err
}
