package reply_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/execution/reply"
)

// block is a content block as clients decode it.
type block struct{ Type, Text string }

func decode(t *testing.T, raw json.RawMessage) []block {
	t.Helper()
	var blocks []block
	if err := json.Unmarshal(raw, &blocks); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return blocks
}

func TestNoContent(t *testing.T) {
	if got := string(reply.NoContent()); got != "[]" {
		t.Errorf("got %s", got)
	}
}

func TestTextContent(t *testing.T) {
	for _, text := range []string{"", "hello", "a \"quoted\" word\nand a line", "λ 🎉 \u2028"} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]block{{"text", text}}, decode(t, reply.TextContent(quoted))); diff != "" {
			t.Errorf("%q (-want +got)\n%s", text, diff)
		}
	}
}

func TestValueContent(t *testing.T) {
	for _, value := range []string{
		`null`, `{"sum":5}`, `"text"`, `"back\\slash and \"quote\""`, `"escaped \u0007 \n"`, `[1.50, 1e3]`,
		"{\n\t\"spaced\": true\r\n}", `"λ 🎉"`, "\"\u2028\"", "\"\x7f\"",
	} {
		if diff := cmp.Diff([]block{{"text", value}}, decode(t, reply.ValueContent([]byte(value)))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", value, diff)
		}
	}
}

func FuzzValueContent(f *testing.F) {
	f.Add(`{"a":"b"}`)
	f.Add("\"\\u0000\\\"\"")
	f.Fuzz(func(t *testing.T, value string) {
		if !json.Valid([]byte(value)) || !utf8.ValidString(value) {
			t.Skip()
		}
		if diff := cmp.Diff([]block{{"text", value}}, decode(t, reply.ValueContent([]byte(value)))); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
