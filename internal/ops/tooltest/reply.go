package tooltest

import (
	"encoding/json"
	"slices"
	"strings"
)

// replied is the result of a resource or a prompt, as far as tests look at it.
type replied struct {
	Contents []struct {
		MIMEType   string `json:"mimeType"`
		Text, Blob string
	}
	Messages   []message
	Completion struct{ Values []string }
}

// message is a message of a prompt.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// reply judges what is no tool.
func (j *judge) reply() {
	var got replied
	if err := json.Unmarshal(j.got.Reply, &got); err != nil {
		j.fail("the result cannot be read: %v", err)
		return
	}
	if text := got.text(); j.want.Text != nil && *j.want.Text != text {
		j.fail("the text is %q, want %q", text, *j.want.Text)
	}
	if want, values := j.want.Values, got.Completion.Values; want != nil && !slices.Equal(want, values) {
		j.fail("the values are %q, want %q", values, want)
	}
	if want := j.want.MIMEType; want != "" {
		for _, c := range got.Contents {
			if c.MIMEType != want {
				j.fail("the type is %q, want %q", c.MIMEType, want)
			}
		}
	}
	if j.want.Messages == nil {
		return
	}
	// What was decoded from JSON encodes.
	messages, _ := json.Marshal(got.Messages)
	if !sameJSON(j.want.Messages, messages) {
		j.fail("the messages are\n%s\nwant\n%s", indent(messages), indent(j.want.Messages))
	}
}

// text joins the texts of a resource, or of the messages of a prompt.
func (r *replied) text() string {
	var texts []string
	for _, c := range r.Contents {
		texts = append(texts, c.Text)
	}
	for _, m := range r.Messages {
		var block struct{ Type, Text string }
		if json.Unmarshal(m.Content, &block) == nil && block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}
