package reply

import (
	"encoding/json"
	"errors"
	"fmt"
)

// block is a content block as bodies make it (2026-07-28 schema, ContentBlock).
type block struct {
	Type     string
	Text     *string
	Data     *string
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string
	Resource *struct {
		URI        string `json:"uri"`
		MIMEType   string `json:"mimeType"`
		Text, Blob *string
	}
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

// check returns what the block lacks.
func (b *block) check() error {
	switch b.Type {
	case "text":
		return needs(b.Text != nil, "a text block needs text, a string")
	case "image", "audio":
		return needs(b.Data != nil && b.MIMEType != "", "an "+b.Type+" block needs data in base64, and a mimeType")
	case "resource":
		return needs(b.Resource != nil && b.Resource.URI != "" && (b.Resource.Text != nil) != (b.Resource.Blob != nil),
			"a resource block needs a resource with a uri and with text or blob")
	case "resource_link":
		return needs(b.URI != "" && b.Name != "", "a link needs a uri and a name")
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
