package reply_test

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/scripting"
)

const (
	textBlock  = `{"type":"text","text":"x"}`
	imageBlock = `{"type":"image","data":"AQI=","mimeType":"image/png"}`
)

func TestPlainBlocks_content(t *testing.T) {
	for _, block := range []string{
		textBlock,
		imageBlock,
		`{"text":"","type":"text"}`,
		`{"type":"audio","data":"AQI=","mimeType":"audio/wav"}`,
		`{"type":"resource","resource":{"uri":"x:y","text":"x"}}`,
		`{"type":"resource","resource":{"uri":"x:y","mimeType":"image/png","blob":"AQI=","_meta":{"a":1}}}`,
		`{"type":"resource_link","uri":"x:y","name":"n"}`,
		`{"type":"resource_link","uri":"x:y","name":"n","title":"T","description":"d","mimeType":"text/plain","size":0,"icons":[{"src":"data:,"}]}`,
		`{"type":"text","text":"x","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-02T03:04:05Z"},"_meta":{}}`,
	} {
		for _, value := range []string{block, "[" + block + "]", "[" + block + "," + textBlock + "]"} {
			want := value
			if value == block {
				want = "[" + block + "]"
			}
			if got := string(reply.PlainBlocks([]byte(value))); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", value, got, want)
			}
		}
	}
}

func TestPlainBlocks_value(t *testing.T) {
	for _, value := range []string{
		`null`, `[]`, `{}`, `1`, `"type"`, `["type"]`, `[[` + textBlock + `]]`, `[` + textBlock + `,"x"]`, `[` + textBlock + `,null]`, `[` + textBlock + `,{}]`,
		`{"content":[` + textBlock + `]}`,
		`{"type":"text"}`, `{"type":"text","text":null}`, `{"type":"text","text":1}`, `{"type":"Text","text":"x"}`, `{"Type":"text","Text":"x"}`, `{"text":"x"}`,
		`{"type":"text","text":"x","author":"me"}`, `{"type":"text","text":"x","data":"AQI="}`, `{"type":null,"text":"x"}`, `{"type":["text"],"text":"x"}`,
		`{"type":"image","data":"photo.png","mimeType":"image/png"}`, `{"type":"image","data":"AQI=","mimeType":"picture"}`, `{"type":"image","data":"AQI=","mime_type":"image/png"}`,
		`{"type":"resource","resource":{"uri":"x:y"}}`, `{"type":"resource","resource":{"uri":"x:y","text":"x","blob":"AQI="}}`, `{"type":"resource","resource":"x:y"}`,
		`{"type":"resource","resource":{"uri":"x:y","text":"x","size":1}}`, `{"type":"resource","resource":null}`,
		`{"type":"resource_link","uri":"y","name":"n"}`, `{"type":"resource_link","uri":"x:y"}`, `{"type":"resource_link","uri":"x:y","name":"n","size":"1"}`,
		`{"type":"resource_link","uri":"x:y","name":"n","icons":[{}]}`, `{"type":"resource_link","uri":"x:y","name":"n","title":null}`,
		`{"type":"text","text":"x","annotations":{"audience":["nobody"]}}`, `{"type":"text","text":"x","annotations":{"priority":2}}`,
		`{"type":"text","text":"x","annotations":{"color":"red"}}`, `{"type":"text","text":"x","annotations":null}`, `{"type":"text","text":"x","_meta":1}`,
		`{"type":"tool_use","id":"1","name":"n","input":{}}`, `{"type":"video","data":"AQI=","mimeType":"video/mp4"}`,
	} {
		if got := reply.PlainBlocks([]byte(value)); got != nil {
			t.Errorf("%s is content: %s", value, got)
		}
	}
}

func TestContents_plainBlocks(t *testing.T) {
	value := "[" + textBlock + "," + imageBlock + "]"
	entries := `{"contents":[{"uri":"a:b","mimeType":"text/plain","text":"x"},{"uri":"a:b","mimeType":"image/png","blob":"AQI="}]}`
	document := `"text":"` + strings.ReplaceAll(value, `"`, `\"`) + `"}]}`
	for mimeType, want := range map[string]string{
		"":                         entries,
		"text/plain":               entries,
		"application/json":         `{"contents":[{"uri":"a:b","mimeType":"application/json",` + document,
		"application/ld+json; v=1": `{"contents":[{"uri":"a:b","mimeType":"application/ld+json; v=1",` + document,
	} {
		if got := resultOrError(reply.Contents("a:b", mimeType, &scripting.Result{Kind: scripting.Value, JSON: []byte(value)})); got != want {
			t.Errorf("%q\ngot  %s\nwant %s", mimeType, got, want)
		}
	}
}
