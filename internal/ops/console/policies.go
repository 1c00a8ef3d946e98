package console

import (
	"encoding/json"
	"net/http"
	"strings"

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
