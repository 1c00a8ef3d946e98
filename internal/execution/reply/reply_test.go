package reply_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/scripting"
)

// resultOrError returns a reply, or else the error.
func resultOrError(made json.RawMessage, err error) string {
	if err != nil {
		return err.Error()
	}
	return string(made)
}

func TestCheckBlocks_invalid(t *testing.T) {
	const image = "block 1: an image block needs data in base64, and a mimeType, a type and a subtype"
	const resource = "block 1: a resource block needs a resource with an absolute uri, and with text, or with a blob in base64"
	for _, c := range []struct{ block, contents string }{
		{`{"type":"text","text":"x"}`, `{"contents":[{"uri":"a:b","mimeType":"text/plain","text":"x"}]}`},
		{`{"type":"text","text":null}`, "block 1: a text block needs text, a string"},
		{`{"type":"text","text":"x","annotations":5}`, "the content cannot be read: a member has the wrong type"},
		{`{"type":"image","mimeType":"image/png","data":"AQI="}`, `{"contents":[{"uri":"a:b","mimeType":"image/png","blob":"AQI="}]}`},
		{`{"type":"image","mimeType":"image/png","data":"AQI"}`, image},
		{`{"type":"image","mimeType":"image/png","data":"%%%"}`, image},
		{`{"type":"image","mimeType":"image/png","data":"AQ\nI="}`, image},
		{`{"type":"image","mimeType":"image/png"}`, image},
		{`{"type":"image","data":"AQI="}`, image},
		{`{"type":"image","mimeType":"picture","data":"AQI="}`, image},
		{`{"type":"audio","mimeType":"audio wav","data":"AQI="}`, strings.Replace(image, "image", "audio", 1)},
		{`{"type":"resource","resource":{"uri":"x:y","blob":"AQI="}}`, `{"contents":[{"uri":"x:y","blob":"AQI="}]}`},
		{`{"type":"resource","resource":{"uri":"x:y","blob":"#"}}`, resource},
		{`{"type":"resource","resource":{"uri":"x:y","text":"x","blob":"AQI="}}`, resource},
		{`{"type":"resource","resource":{"uri":"y","text":"x"}}`, resource},
		{`{"type":"resource_link","uri":"y","name":"x"}`, "block 1: a link needs an absolute uri and a name"},
		{`{"type":"resource_link","uri":"x:y","name":"x"}`, "block 1: a resource cannot hold a link; return its content"},
	} {
		got := resultOrError(reply.Contents("a:b", "", &scripting.Result{Kind: scripting.Content, Content: []byte("[" + c.block + "]")}))
		if got != c.contents {
			t.Errorf("%s\ngot  %s\nwant %s", c.block, got, c.contents)
		}
	}
	got := resultOrError(reply.Contents("a:b", "", &scripting.Result{Kind: scripting.Content, Content: []byte("[]")}))
	if want := "the resource returned nothing; return a string, a value or content"; got != want {
		t.Errorf("no blocks: %s", got)
	}
}

func TestMessages_invalid(t *testing.T) {
	const wrong = "the prompt must return messages: [{ role, content }]"
	const untyped = "message 1: block 1: a resource in a prompt needs a mimeType, a type and a subtype"
	for value, want := range map[string]string{
		`null`: wrong, `{}`: wrong, `1`: wrong, `["a"]`: wrong, `{"messages":[]}`: wrong, `[{"type":"text","text":"x","id":1}]`: wrong,
		`[{"type":"text","text":"x"}]`:   `{"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}`,
		`{"type":"text","text":"x"}`:     `{"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}`,
		`[]`:                             `{"messages":[]}`,
		`{"content":"x"}`:                `message 1: its role must be "user" or "assistant"`,
		`{"role":"user"}`:                "message 1: it needs content: a string, or content from content.text() and similar functions",
		`{"role":"user","content":null}`: "message 1: its content must be a string, a block, or an array of blocks",
		`{"role":"user","content":"x"}`:  `{"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}`,
		`{"role":"user","content":{"type":"resource","resource":{"uri":"x:y","text":"x"}}}`:                         untyped,
		`{"role":"user","content":{"type":"resource","resource":{"uri":"x:y","mimeType":"text","blob":"AQI="}}}`:    untyped,
		`{"role":"user","content":{"type":"resource","resource":{"uri":"x:y","mimeType":"text/plain","text":"x"}}}`: `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"x:y","mimeType":"text/plain","text":"x"}}}]}`,
		`[{"role":"user","content":[{}]}]`: `message 1: block 1: its type must be "text", "image", "audio", "resource" or "resource_link"; content.text() and similar functions make blocks`,
	} {
		if got := resultOrError(reply.Messages("", &scripting.Result{Kind: scripting.Value, JSON: []byte(value)})); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", value, got, want)
		}
	}
}

func TestCompletion(t *testing.T) {
	const wrong = "the completion must return an array of strings"
	for value, want := range map[string]string{
		`null`:       `{"completion":{"values":[],"total":0,"hasMore":false}}`,
		`["a","b"]`:  `{"completion":{"values":["a","b"],"total":2,"hasMore":false}}`,
		`["a",null]`: wrong, `[1]`: wrong, `{"values":["a"]}`: wrong, `{}`: wrong,
	} {
		if got := resultOrError(reply.Completion(&scripting.Result{Kind: scripting.Value, JSON: []byte(value)})); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", value, got, want)
		}
	}
}
