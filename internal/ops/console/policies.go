package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// policiesBody is the data of the page of policies.
type policiesBody struct {
	CSRF        string
	Matrix      *control.MatrixResult
	MatrixError string
	Query       string
	Rows        []matrixRow
	Hidden      int // rows that do not match or are too many
	Explain     explainForm
	Explained   *control.ExplainResult
	Edit        editForm
}

// matrixRow is a row of the matrix.
type matrixRow struct {
	control.ItemName
	Cells []control.MatrixCell
}

// maxMatrix is the number of rows of the matrix in a page.
const maxMatrix = 100

// explainForm is the form that explains a call.
type explainForm struct {
	Kind, Address, Arguments string
	As                       asForm
	Kinds                    []string
	Error                    string
}

// policies shows which principals may call which items.
func (c *Console) policies(w http.ResponseWriter, r *http.Request) {
	c.showPolicies(w, r, policiesBody{Explain: newExplainForm(r), Edit: c.editFormOf(r, r.URL.Query().Get("file"))})
}

// newExplainForm returns the form for the item and the caller in the address of a page.
func newExplainForm(r *http.Request) explainForm {
	name := itemName(r)
	if name.Kind == "" {
		name.Kind = itemKinds[0]
	}
	return explainForm{Kind: name.Kind, Address: name.Address, Arguments: "{}", As: asFormOf(r.URL.Query())}
}

// showPolicies shows the page with its forms, and adds the matrix.
func (c *Console) showPolicies(w http.ResponseWriter, r *http.Request, b policiesBody) {
	b.Explain.Kinds, b.Query = itemKinds, r.URL.Query().Get("q")
	if s := c.sessionOf(r); s != nil {
		b.CSRF = s.csrf
	}
	var m control.MatrixResult
	if err := c.do(r, control.Matrix, control.MatrixQuery{}, &m); err != nil {
		b.MatrixError = err.Error()
	} else {
		b.Matrix = &m
		words := searchWords(b.Query)
		for i, item := range m.Items {
			if i >= len(m.Cells) || len(b.Rows) >= maxMatrix || !contains(control.ItemSummary{ItemName: item}, words) {
				b.Hidden++
				continue
			}
			b.Rows = append(b.Rows, matrixRow{item, m.Cells[i]})
		}
	}
	c.show(w, r, http.StatusOK, "policies", "Policies", "/policies", b)
}

// explain explains a call that is not made. Like a page it changes nothing, but its form may be too
// long for an address.
func (c *Console) explain(w http.ResponseWriter, r *http.Request) {
	posted := r.PostForm
	f := explainForm{Kind: posted.Get("kind"), Address: strings.TrimSpace(posted.Get("address")), Arguments: strings.TrimSpace(posted.Get("json")), As: asFormOf(posted)}
	if f.Arguments == "" {
		f.Arguments = "{}"
	}
	as, ok := f.As.caller()
	if _, isObject := decodeJSON([]byte(f.Arguments)).(map[string]any); !isObject {
		f.Error, ok = "The arguments are not a JSON object.", false
	}
	if !ok {
		c.showPolicies(w, r, policiesBody{Explain: f, Edit: c.editFormOf(r, "")})
		return
	}
	var row control.ExplainResult
	if err := c.do(r, control.Explain, control.ExplainCall{ItemName: control.ItemName{Kind: f.Kind, Address: f.Address}, Arguments: json.RawMessage(f.Arguments), As: as}, &row); err != nil {
		f.Error = err.Error()
		c.showPolicies(w, r, policiesBody{Explain: f, Edit: c.editFormOf(r, "")})
		return
	}
	c.showPolicies(w, r, policiesBody{Explain: f, Explained: &row, Edit: c.editFormOf(r, "")})
}

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
	if !f.Elsewhere {
		f.File, f.Revision, f.Text = posted.Get("file"), posted.Get("revision"), posted.Get("text")
		f.Error = cmp.Or(f.Error, uneditable(f.Text))
	}
	if !f.Elsewhere && f.Error == "" {
		var got control.ReplayResult
		edit := control.PolicyEdit{PolicyFile: control.PolicyFile{File: f.File}, Text: f.Text, Revision: f.Revision}
		if err := c.do(r, control.Replay, edit, &got); err != nil {
			f.Error = err.Error()
		} else {
			f.Replayed = &got
		}
	}
	c.showPolicies(w, r, policiesBody{Explain: newExplainForm(r), Edit: f})
}
