package overlay

import (
	"errors"
	"net/url"
	"strings"

	"github.com/mcpd/mcpd/internal/base/safetext"
)

// elicitation returns the parameters of a question to a user, of a form or of a page: those
// of the other, and of ways to ask that clients may know and we do not, would be judged by
// nobody.
func (l *leg) elicitation(said members) (map[string]any, error) {
	params := map[string]any{"message": l.words(said.text("message"), safetext.Words)}
	switch mode := said.text("mode"); {
	case mode == "url":
		if !isPage(said.text("url")) {
			return nil, errors.New("users are sent to pages over https alone, by a URL in ASCII")
		}
		params["mode"], params["url"] = mode, said.text("url")
		if id := said.text("elicitationId"); id != "" {
			params["elicitationId"] = id
		}
		return params, nil
	case mode == "form":
		params["mode"] = mode
	case said["mode"] != nil:
		return nil, errors.New("users are asked by a form or by a url")
	}
	form, err := formOf(said["requestedSchema"], l.title)
	params["requestedSchema"] = form
	return params, err
}

// words writes a text of the server behind its label. One that holds a secret stays as it
// is: the question is refused for it, and would not be for half of one.
func (l *leg) words(text string, write func(label, text string, most int) string) string {
	label := "[" + l.server + "] "
	if l.holdsSecret(text) {
		return label + text
	}
	return write(label, text, maxMessage)
}

// maxTitle bounds what a form says of one thing, in bytes.
const maxTitle = 4 << 10

// title writes a text within a form, if it holds no secret.
func (l *leg) title(text string) string {
	if l.holdsSecret(text) {
		return text
	}
	return safetext.Title(text, maxTitle)
}

func (l *leg) holdsSecret(text string) bool {
	return l.invocation.Host.Secrets.Redact(text) != text
}

// isPage reports whether users may be sent to a page. Its address is one that reads the
// same to everybody.
func isPage(text string) bool {
	at, err := url.Parse(text)
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }
	return err == nil && at.Scheme == "https" && at.Host != "" && at.User == nil && !strings.ContainsFunc(text, odd)
}
