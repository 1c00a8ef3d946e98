package reply

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strings"
)

// block is a content block as bodies make it (2026-07-28 schema, ContentBlock).
type block struct {
	Type     string
	Text     *string
	Data     *string
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string
	Resource *embedded
	// Annotations are decoded for their types alone.
	Annotations *struct {
		Audience []string
		Priority *float64
	}
}

// embedded is the resource that a block embeds.
type embedded struct {
	URI        string `json:"uri"`
	MIMEType   string `json:"mimeType"`
	Text, Blob *string
}

// decodeBlocks decodes and checks an array of blocks.
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

// CheckBlocks returns what keeps JSON from being an array of content blocks.
func CheckBlocks(content []byte) error {
	_, err := decodeBlocks(content)
	return err
}

// check returns what the block lacks.
func (b *block) check() error {
	switch b.Type {
	case "text":
		return needs(b.Text != nil, "a text block needs text, a string")
	case "image", "audio":
		return needs(isBase64(b.Data) && isMIMEType(b.MIMEType), "an "+b.Type+" block needs data in base64, and a mimeType, a type and a subtype")
	case "resource":
		r := b.Resource
		return needs(r != nil && isURI(r.URI) && (r.Text != nil) != (r.Blob != nil) && (r.Text != nil || isBase64(r.Blob)),
			"a resource block needs a resource with an absolute uri, and with text, or with a blob in base64")
	case "resource_link":
		return needs(isURI(b.URI) && b.Name != "", "a link needs an absolute uri and a name")
	default:
		return errors.New(`its type must be "text", "image", "audio", "resource" or "resource_link"; content.text() and its kin make blocks`)
	}
}

func needs(met bool, otherwise string) error {
	if met {
		return nil
	}
	return errors.New(otherwise)
}

// isMIMEType reports whether s is a type and a subtype (RFC 9110 section 8.3.1).
func isMIMEType(s string) bool {
	base, _, err := mime.ParseMediaType(s)
	return err == nil && strings.Contains(base, "/")
}

// isURI reports whether clients take s for an absolute URI.
func isURI(s string) bool {
	parsed, err := url.Parse(s)
	return err == nil && parsed.Scheme != ""
}

// isBase64 reports whether s is bytes in standard base64, without decoding them
// into memory.
func isBase64(s *string) bool {
	if s == nil || strings.ContainsAny(*s, "\r\n") {
		return false
	}
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(*s)))
	return err == nil
}
