package overlay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/scripting"
)

func (rc *remoteCall) outcome(result json.RawMessage) scripting.Outcome {
	if len(result) > rc.output {
		return scripting.Outcome{Failure: &scripting.Failure{
			Kind: scripting.Limit, Limit: "output", Message: fmt.Sprintf("the result has more than %d bytes", rc.output),
		}}
	}
	object := decoded(rc.invocation.Host.Secrets.RedactJSON(result))
	switch rc.method {
	case upstream.MethodTool:
		return rc.toolResult(object)
	case upstream.MethodRead:
		outcome := passThrough(object, []string{"contents"}, nil)
		if outcome.Result != nil {
			outcome.Result.TTL = object.ttl()
		}
		return outcome
	case upstream.MethodComplete:
		return completionOutcome(object)
	}
	return passThrough(object, []string{"messages"}, []string{"description"})
}

// passThrough forwards members of a result: lists of objects, and texts.
func passThrough(object jsonObject, lists, texts []string) scripting.Outcome {
	members := map[string]json.RawMessage{}
	for _, name := range lists {
		var list []jsonObject
		if json.Unmarshal(object[name], &list) != nil || list == nil {
			return failed("the response of the upstream server has no %s", name)
		}
		members[name] = object[name]
	}
	for _, name := range texts {
		if text := object.text(name); text != "" {
			members[name] = object[name]
		}
	}
	// Decoded members always encode.
	encoded, _ := json.Marshal(members)
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Value, JSON: encoded}}
}

// ttl returns how long a result may be cached (2026-07-28 server/utilities/caching), or 0.
func (o jsonObject) ttl() time.Duration {
	var ms float64
	if json.Unmarshal(o["ttlMs"], &ms) != nil {
		return 0
	}
	return time.Duration(min(max(ms, 0), float64(maxTTL/time.Millisecond))) * time.Millisecond
}

// maxTTL bounds the ttl of a server.
const maxTTL = 24 * time.Hour

// toolResult converts the result of a tool (2026-07-28 server/tools, Tool Result).
func (rc *remoteCall) toolResult(object jsonObject) scripting.Outcome {
	blocks := object["content"]
	if blocks == nil {
		blocks = reply.NoContent()
	}
	if err := reply.CheckBlocks(blocks); err != nil {
		return failed("the upstream server returns invalid content: %v", err)
	}
	value := object["structuredContent"]
	if string(value) == "null" {
		value = nil
	}
	if isError := object.boolean("isError"); isError != nil && *isError {
		return scripting.Outcome{Failure: toolError(blocks, value)}
	}
	if value != nil && string(blocks) == "[]" {
		blocks = reply.ValueContent(value) // for clients without structured content (2025-11-25 server/tools)
	}
	if text := singleText(blocks); text != nil && value == nil {
		return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Text, JSON: text}}
	}
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Content, JSON: value, Content: blocks}}
}

// singleText returns the JSON text of content that is exactly one text block, or nil.
func singleText(list json.RawMessage) json.RawMessage {
	var blocks []jsonObject
	if json.Unmarshal(list, &blocks) != nil || len(blocks) != 1 || len(blocks[0]) != 2 || blocks[0].text("type") != "text" {
		return nil
	}
	return blocks[0]["text"]
}

// toolError converts an error that the tool reports. The texts are its message.
func toolError(list, value json.RawMessage) *scripting.Failure {
	var blocks []jsonObject
	_ = json.Unmarshal(list, &blocks) // already checked
	var texts []string
	for _, b := range blocks {
		if b.text("type") == "text" {
			texts = append(texts, b.text("text"))
		}
	}
	message := cmp.Or(truncateMessage(strings.Join(texts, "\n")), "the tool failed without a message")
	f := &scripting.Failure{Kind: scripting.ToolError, Message: message}
	if isObject(value) {
		f.Details = value
	}
	return f
}

// completion completes an argument of a prompt, or a variable of a template.
type completion struct {
	pool     *upstream.Pool
	server   string
	ref      map[string]string
	argument string
}

// Run requests completions from the server (2026-07-28 server/utilities/completion).
func (c *completion) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	var typed struct {
		Value  string
		Params map[string]string
	}
	if err := json.Unmarshal(i.Input, &typed); err != nil {
		return scripting.Outcome{}, fmt.Errorf("decode completion: %w", err)
	}
	filled := map[string]string{}
	for name, value := range typed.Params {
		if name != c.argument {
			filled[name] = value
		}
	}
	// Plain data always encodes.
	params, _ := json.Marshal(map[string]any{
		"ref": c.ref, "argument": map[string]string{"name": c.argument, "value": typed.Value}, "context": map[string]any{"arguments": filled},
	})
	rc := &remoteCall{handler: &handler{pool: c.pool, server: c.server, method: upstream.MethodComplete, output: math.MaxInt}, invocation: &i}
	call, err := c.pool.Start(ctx, c.server, upstream.Request{Method: upstream.MethodComplete, Arguments: params}, nil)
	if err != nil {
		return scripting.Outcome{}, unavailableError(err)
	}
	return rc.await(ctx, call)
}

// maxCompletions is the maximum number of completions (2026-07-28 server/utilities/completion).
const maxCompletions = 100

func completionOutcome(result jsonObject) scripting.Outcome {
	object := decoded(result["completion"])
	var values []string
	if json.Unmarshal(object["values"], &values) != nil || len(values) > maxCompletions {
		return failed("the upstream server returns a completion that is not a list of strings")
	}
	members := map[string]any{"values": append([]string{}, values...), "hasMore": false}
	if more := object.boolean("hasMore"); more != nil {
		members["hasMore"] = *more
	}
	var total int
	if json.Unmarshal(object["total"], &total) == nil && total >= len(values) {
		members["total"] = total
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(map[string]any{"completion": members})
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Value, JSON: encoded}}
}
