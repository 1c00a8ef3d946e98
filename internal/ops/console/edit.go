package console

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// editForm is the form that tries an edit of a policy file. Nothing is saved.
type editForm struct {
	// Elsewhere means that edits are not replayed here: the pages are on a listener.
	Elsewhere      bool
	Files          []string
	File, Revision string
	Text           string
	Error          string
	Replayed       *control.ReplayResult
}

// maxEdited bounds the text of a file that is edited in a page, in bytes.
const maxEdited = maxLong

// editFormOf returns the form for a file of the server; "" is for none yet.
func (c *Console) editFormOf(r *http.Request, file string) editForm {
	if c.options.Base != "" {
		return editForm{Elsewhere: true}
	}
	var got control.PolicyFilesResult
	if err := c.do(r, control.PolicyFiles, control.PolicyFile{File: file}, &got); err != nil {
		if file == "" {
			return editForm{Error: err.Error()}
		}
		f := c.editFormOf(r, "")
		f.Error = err.Error()
		return f
	}
	f := editForm{Files: got.Files, File: file, Revision: got.Revision, Error: got.Problem, Text: strings.ReplaceAll(got.Text, "\r\n", "\n")}
	if problem := uneditable(f.Text); problem != "" {
		f.File, f.Text, f.Error = "", "", problem
	}
	return f
}

// uneditable says why a text cannot be edited in a page.
func uneditable(text string) string {
	switch {
	case len(text) > maxEdited:
		return fmt.Sprintf("The file has more than %d KiB. Use mcpd policy replay.", maxEdited>>10)
	case !utf8.ValidString(text), strings.ContainsRune(text, utf8.RuneError): // JSON replaces other bytes
		return "The file is not UTF-8. Use mcpd policy replay."
	}
	return ""
}

// replay replays an edit. Like a page it changes nothing, but its form is too long for an address.
func (c *Console) replay(w http.ResponseWriter, r *http.Request) {
	posted := r.PostForm
	f := c.editFormOf(r, "")
	f.File, f.Revision, f.Text = posted.Get("file"), posted.Get("revision"), posted.Get("text")
	if f.Error = uneditable(f.Text); f.Error == "" {
		var got control.ReplayResult
		edit := control.PolicyEdit{PolicyFile: control.PolicyFile{File: f.File}, Text: f.Text, Revision: f.Revision}
		if err := c.do(r, control.Replay, edit, &got); err != nil {
			f.Error = err.Error()
		} else {
			f.Replayed = &got
		}
	}
	if f.Elsewhere {
		f = editForm{Elsewhere: true, Error: f.Error}
	}
	c.showPolicies(w, r, policiesBody{Explain: newExplainForm(r), Edit: f})
}
