package reply

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	"github.com/mcpd/mcpd/scripting"
)

// The types of what an author gives none.
const (
	plainType = "text/plain"
	jsonType  = "application/json"
)

var errNoContents = errors.New("the resource returned nothing; return a string, a value or content")

// Contents returns {"contents": […]} of what the body of a resource returned
// (2026-07-28 server/resources, Resource Contents): a string is text, rich
// content becomes one entry a block, and any other value is its JSON. Blocks that are
// plain values are content too, unless the author declares a JSON type. An empty
// mimeType leaves the type to what was returned.
func Contents(uri, mimeType string, r *scripting.Result) (json.RawMessage, error) {
	switch r.Kind {
	case scripting.Nothing:
		return nil, errNoContents
	case scripting.Text:
		return text(uri, cmp.Or(mimeType, plainType), r.JSON), nil
	case scripting.Content:
		return ofBlocks(uri, mimeType, r.Content)
	default:
		if blocks := PlainBlocks(r.JSON); blocks != nil && !isJSONType(mimeType) {
			return ofBlocks(uri, mimeType, blocks)
		}
		return text(uri, cmp.Or(mimeType, jsonType), quote(string(r.JSON))), nil
	}
}

// isJSONType reports whether a media type is JSON (RFC 6839 section 3.1).
func isJSONType(mimeType string) bool {
	base, _, err := mime.ParseMediaType(mimeType)
	return err == nil && (base == jsonType || strings.HasSuffix(base, "+json"))
}

// Stored returns {"contents": […]} of what stands in a file.
func Stored(uri, mimeType string, content []byte, binary bool) json.RawMessage {
	if !binary {
		return text(uri, mimeType, quote(string(content)))
	}
	return contents(appendBytes(entry(uri, mimeType), "blob", content))
}

// text returns contents of one text, given as a JSON string.
func text(uri, mimeType string, quoted []byte) json.RawMessage {
	return contents(appendMember(entry(uri, mimeType), "text", quoted))
}

func entry(uri, mimeType string) []byte {
	return appendOptional(appendText([]byte{'{'}, "uri", uri), "mimeType", mimeType)
}

// contents closes an entry and the list that it is all of.
func contents(open []byte) json.RawMessage {
	b := make([]byte, 0, len(open)+len(`{"contents":[}]}`))
	return append(append(append(b, `{"contents":[`...), open...), "}]}"...)
}

// ofBlocks returns one entry for each content block.
func ofBlocks(uri, mimeType string, content []byte) (json.RawMessage, error) {
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

// appendEntry appends the block as an entry of the contents of a resource.
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
