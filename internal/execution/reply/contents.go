// Package reply builds the MCP results of resources, prompts and completions.
//
// The result of a script is untrusted JSON and is validated here; content from files is only
// encoded. Errors are for the author of the script, and quote only text that the script has
// returned.
package reply

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/scripting"
)

// Default media types.
const (
	plainType = "text/plain"
	jsonType  = "application/json"
)

var errNoContents = errors.New("the resource returned nothing; return a string, a value or content")

// Contents returns {"contents": […]} for the result of a resource script (2026-07-28
// server/resources, Resource Contents). A string becomes text, each content block becomes an entry,
// and any other value becomes JSON text. Content blocks that are plain values count as content
// unless the author declares a JSON type. An empty mimeType is replaced by the type of the result.
func Contents(uri, mimeType string, r *scripting.Result) (json.RawMessage, error) {
	switch r.Kind {
	case scripting.Nothing:
		return nil, errNoContents
	case scripting.Text:
		return text(uri, cmp.Or(mimeType, plainType), r.JSON), nil
	case scripting.Content:
		return blockContents(uri, mimeType, r.Content)
	default:
		if blocks := PlainBlocks(r.JSON); blocks != nil && !isJSONType(mimeType) {
			return blockContents(uri, mimeType, blocks)
		}
		return text(uri, cmp.Or(mimeType, jsonType), quote(string(r.JSON))), nil
	}
}

// isJSONType reports whether a media type is JSON (RFC 6839 section 3.1).
func isJSONType(mimeType string) bool {
	base, _, err := mime.ParseMediaType(mimeType)
	return err == nil && (base == jsonType || strings.HasSuffix(base, "+json"))
}

// StaticContents returns {"contents": […]} for content from a file.
func StaticContents(uri, mimeType string, content []byte, binary bool) json.RawMessage {
	if !binary {
		return text(uri, mimeType, quote(string(content)))
	}
	return contents(appendBytes(entry(uri, mimeType), "blob", content))
}

// text returns contents with one text; quoted is a JSON string.
func text(uri, mimeType string, quoted []byte) json.RawMessage {
	return contents(appendMember(entry(uri, mimeType), "text", quoted))
}

func entry(uri, mimeType string) []byte {
	return appendOptional(appendText([]byte{'{'}, "uri", uri), "mimeType", mimeType)
}

// contents closes an entry, and the list with this single entry.
func contents(open []byte) json.RawMessage {
	b := make([]byte, 0, len(open)+len(`{"contents":[}]}`))
	return append(append(append(b, `{"contents":[`...), open...), "}]}"...)
}

// blockContents returns one entry per content block.
func blockContents(uri, mimeType string, content []byte) (json.RawMessage, error) {
	blocks, err := decodeBlocks(content)
	switch {
	case err != nil:
		return nil, err
	case len(blocks) == 0:
		return nil, errNoContents
	}
	b := []byte(`{"contents":[`)
	for i, block := range blocks {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = block.appendEntry(b, uri, mimeType); err != nil {
			return nil, fmt.Errorf("block %d: %w", i+1, err)
		}
	}
	return append(b, "]}"...), nil
}

// appendEntry appends the block as an entry of resource contents.
func (b *block) appendEntry(dst []byte, uri, mimeType string) ([]byte, error) {
	dst = append(dst, '{')
	switch b.Type {
	case "text":
		dst = appendText(appendText(dst, "uri", uri), "mimeType", cmp.Or(mimeType, plainType))
		dst = appendText(dst, "text", *b.Text)
	case "image", "audio":
		dst = appendText(appendText(dst, "uri", uri), "mimeType", b.MIMEType)
		dst = appendText(dst, "blob", *b.Data)
	case "resource":
		dst = appendOptional(appendText(dst, "uri", b.Resource.URI), "mimeType", b.Resource.MIMEType)
		if b.Resource.Text != nil {
			dst = appendText(dst, "text", *b.Resource.Text)
		} else {
			dst = appendText(dst, "blob", *b.Resource.Blob)
		}
	default:
		return nil, errors.New("a resource cannot hold a link; return its content")
	}
	return append(dst, '}'), nil
}

// block is a content block (2026-07-28 schema, ContentBlock).
type block struct {
	Type     string
	Text     *string
	Data     *string
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string
	Resource *embedded
	// Annotations are decoded only to check their types.
	Annotations *struct {
		Audience []string
		Priority *float64
	}
}

// embedded is the resource in a block.
type embedded struct {
	URI        string `json:"uri"`
	MIMEType   string `json:"mimeType"`
	Text, Blob *string
}

// decodeBlocks decodes and validates an array of blocks.
func decodeBlocks(content []byte) ([]block, error) {
	var blocks []block
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, errors.New("the content cannot be read: a member has the wrong type")
	}
	for i := range blocks {
		if err := blocks[i].check(); err != nil {
			return nil, fmt.Errorf("block %d: %w", i+1, err)
		}
	}
	return blocks, nil
}

// CheckBlocks reports whether JSON is a valid array of content blocks.
func CheckBlocks(content []byte) error {
	_, err := decodeBlocks(content)
	return err
}

// check reports whether the block is valid.
func (b *block) check() error {
	switch b.Type {
	case "text":
		return require(b.Text != nil, "a text block needs text, a string")
	case "image", "audio":
		return require(isBase64(b.Data) && isMIMEType(b.MIMEType), "an "+b.Type+" block needs data in base64, and a mimeType, a type and a subtype")
	case "resource":
		r := b.Resource
		return require(r != nil && isURI(r.URI) && (r.Text != nil) != (r.Blob != nil) && (r.Text != nil || isBase64(r.Blob)),
			"a resource block needs a resource with an absolute uri, and with text, or with a blob in base64")
	case "resource_link":
		return require(isURI(b.URI) && b.Name != "", "a link needs an absolute uri and a name")
	default:
		return errors.New(`its type must be "text", "image", "audio", "resource" or "resource_link"; content.text() and similar functions make blocks`)
	}
}

func require(ok bool, message string) error {
	if ok {
		return nil
	}
	return errors.New(message)
}

// isMIMEType reports whether s is a type and a subtype (RFC 9110 section 8.3.1).
func isMIMEType(s string) bool {
	base, _, err := mime.ParseMediaType(s)
	return err == nil && strings.Contains(base, "/")
}

// isURI reports whether s is an absolute URI for clients.
func isURI(s string) bool {
	parsed, err := url.Parse(s)
	return err == nil && parsed.Scheme != ""
}

// isBase64 reports whether s is standard base64, without storing the decoded bytes.
func isBase64(s *string) bool {
	if s == nil || strings.ContainsAny(*s, "\r\n") {
		return false
	}
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(*s)))
	return err == nil
}

// appendMember appends a name and a JSON value, with a comma if the object is not empty.
func appendMember(dst []byte, name string, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), `":`...)
	return append(dst, value...)
}

func appendText(dst []byte, name, value string) []byte {
	return appendMember(dst, name, quote(value))
}

// appendOptional is appendText unless the value is empty.
func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendText(dst, name, value)
}

func appendInt(dst []byte, name string, value int64) []byte {
	return appendMember(dst, name, strconv.AppendInt(nil, value, 10))
}

func appendBytes(dst []byte, name string, content []byte) []byte {
	value := make([]byte, 1, base64.StdEncoding.EncodedLen(len(content))+2)
	value[0] = '"'
	value = append(base64.StdEncoding.AppendEncode(value, content), '"')
	return appendMember(dst, name, value)
}

// quote returns text as a JSON string, without escaping < and &, so that HTML does not grow. A
// string always encodes.
func quote(s string) []byte {
	quoted, _ := jsontext.Marshal(s)
	return quoted
}

// NoContent returns content without blocks.
func NoContent() json.RawMessage { return json.RawMessage("[]") }

const beforeText, afterText = `[{"type":"text","text":`, `}]`

// TextContent returns content with one text block; text is a JSON string.
func TextContent(text []byte) json.RawMessage {
	block := make([]byte, 0, len(beforeText)+len(text)+len(afterText))
	return append(append(append(block, beforeText...), text...), afterText...)
}

// ValueContent returns content with one text block that has the JSON of a value.
func ValueContent(value []byte) json.RawMessage {
	block := make([]byte, 0, len(beforeText)+len(value)+len(value)/8+16+len(afterText))
	return append(jsontext.AppendValid(append(block, beforeText...), value), afterText...)
}
