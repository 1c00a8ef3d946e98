package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// Bounds of a result in a page.
const (
	maxMedia     = 4 << 20  // of one image or sound, decoded
	maxAllMedia  = 16 << 20 // of all, encoded
	maxBlocks    = 50
	maxBlockText = 1 << 20 // of all blocks
)

// resultView is the result of a call in a page.
type resultView struct {
	control.TryResult
	Blocks []block
	More   int // blocks that are left out
	// TestPath is the path of the test of a recorded call, and TestFile the name of its file.
	TestPath, TestFile string
	size               int // of the text of Blocks
	media              int // of their images and sounds
}

// CanCopyTest reports that the page shows the whole test.
func (v resultView) CanCopyTest() bool { return len(v.Test) <= maxLong }

// block is a content block, a content of a resource, or a message of a prompt. One of Text, Image
// and Sound is set.
type block struct {
	Label string
	Text  string
	JSON  bool         // Text is JSON
	Image template.URL // a data: URL of a picture
	Sound template.URL
	Note  string
}

// content is the union of content blocks and contents of resources of MCP.
type content struct {
	Type        string          `json:"type"`
	Text        *string         `json:"text"`
	Data        string          `json:"data"`
	Blob        string          `json:"blob"`
	MimeType    string          `json:"mimeType"`
	URI         string          `json:"uri"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Resource    json.RawMessage `json:"resource"`
}

// newResult returns the view of a result.
func newResult(r control.TryResult) resultView {
	v := resultView{TryResult: r}
	for _, j := range list(r.Content) {
		v.add("", j)
	}
	var reply struct {
		Contents    json.RawMessage `json:"contents"`
		Messages    json.RawMessage `json:"messages"`
		Description string          `json:"description"`
	}
	if len(r.Reply) > 0 && json.Unmarshal(r.Reply, &reply) == nil {
		for _, j := range list(reply.Contents) {
			v.add("", j)
		}
		for _, j := range list(reply.Messages) {
			var m struct {
				Role    string          `json:"role"`
				Content json.RawMessage `json:"content"`
			}
			if json.Unmarshal(j, &m) != nil {
				v.add("message", j)
				continue
			}
			v.add(m.Role, m.Content)
		}
	}
	return v
}

// list decodes a JSON list; nil if it is none.
func list(j json.RawMessage) (all []json.RawMessage) {
	if len(j) == 0 || json.Unmarshal(j, &all) != nil {
		return nil
	}
	return all
}

// add adds a block.
func (v *resultView) add(label string, j json.RawMessage) {
	if len(v.Blocks) >= maxBlocks || v.size >= maxBlockText {
		v.More++
		return
	}
	b := blockOf(label, j)
	b.Text = cut(b.Text, maxLong)
	if n := len(b.Image) + len(b.Sound); v.media+n > maxAllMedia {
		b.Image, b.Sound, b.Note = "", "", fmt.Sprintf("%d bytes of encoded data are too many to show with the others", n)
	} else {
		v.media += n
	}
	v.size += len(b.Text)
	v.Blocks = append(v.Blocks, b)
}

// blockOf returns the view of a block. A block of an unknown form is shown as JSON.
func blockOf(label string, j json.RawMessage) block {
	var c content
	if json.Unmarshal(j, &c) != nil {
		return block{Label: label, Text: prettyJSON(j), JSON: true}
	}
	b := block{Label: strings.TrimSpace(label + " " + c.Type)}
	switch {
	case c.Type == "resource" && len(c.Resource) > 0:
		var inner content
		if json.Unmarshal(c.Resource, &inner) == nil {
			inner.Type = ""
			return inner.show(block{Label: b.Label}, c.Resource)
		}
	case c.Type == "resource_link":
		b.Text = c.URI + "\n" + strings.TrimSpace(c.Name+" "+c.MimeType+"\n"+c.Description)
		return b
	}
	return c.show(b, j)
}

// show completes the view of text, a picture or a sound.
func (c content) show(b block, j json.RawMessage) block {
	if c.URI != "" {
		b.Label = strings.TrimSpace(b.Label + " " + c.URI)
	}
	data := c.Data
	if data == "" {
		data = c.Blob
	}
	switch {
	case c.Text != nil:
		b.Text = *c.Text
		if trimmed := strings.TrimSpace(b.Text); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(trimmed)) {
			b.Text, b.JSON = prettyJSON(json.RawMessage(trimmed)), true
		}
	case data != "":
		b = c.media(b, data)
	default:
		b.Text, b.JSON = prettyJSON(j), true
	}
	return b
}

// Types of pictures and sounds that the console shows. Others, such as SVG, are not decoded.
var (
	imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}
	soundTypes = map[string]bool{"audio/mpeg": true, "audio/wave": true, "application/ogg": true, "audio/aiff": true, "video/webm": true}
)

// media shows encoded data as a picture or a sound, by the detected type: the declared type is only
// printed. Text that is not one of them, such as SVG, is shown as text.
func (c content) media(b block, data string) block {
	b.Label = strings.TrimSpace(b.Label + " " + c.MimeType)
	if base64.StdEncoding.DecodedLen(len(data)) > maxMedia {
		b.Note = fmt.Sprintf("%d bytes of data are too many to show", base64.StdEncoding.DecodedLen(len(data)))
		return b
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		b.Note = "the data is not base64"
		return b
	}
	kind, _, _ := strings.Cut(http.DetectContentType(decoded), ";")
	address := template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(decoded))
	switch {
	case imageTypes[kind]:
		b.Image = address
	case soundTypes[kind]:
		b.Sound = address
	case strings.HasPrefix(kind, "text/") && bytes.IndexByte(decoded, 0) < 0:
		b.Text = string(decoded)
	default:
		b.Note = fmt.Sprintf("%d bytes of data", len(decoded))
	}
	return b
}
