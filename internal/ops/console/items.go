package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// pageItems is the number of items of a page of the list.
const pageItems = 100

// Bounds of completions: values in a list, and requests at once.
const (
	maxCompletions = 100
	maxCompleting  = 4
)

// itemsBody is the data of the list of items.
type itemsBody struct {
	Query, Kind    string
	Kinds          []string
	Items          []control.ItemSummary
	From, To       int // the first and last one shown, from 1
	Found, All     int
	Previous, Next string // links
}

// itemKinds are the kinds of items.
var itemKinds = []string{"tool", "resource", "template", "prompt"}

// items lists the items that match a search.
func (c *Console) items(w http.ResponseWriter, r *http.Request) {
	var row control.CatalogResult
	if err := c.do(r, control.Catalog, nil, &row); err != nil {
		c.fail(w, r, "/items", err)
		return
	}
	query := r.URL.Query()
	b := itemsBody{Query: query.Get("q"), Kind: query.Get("kind"), Kinds: itemKinds, All: len(row.Items)}
	words := searchWords(b.Query)
	found := slices.DeleteFunc(row.Items, func(i control.ItemSummary) bool {
		return b.Kind != "" && i.Kind != b.Kind || !contains(i, words)
	})
	b.Found = len(found)
	at, _ := strconv.Atoi(query.Get("page"))
	at = max(0, min(at, (len(found)-1)/pageItems))
	from, to := at*pageItems, min(len(found), (at+1)*pageItems)
	b.Items, b.From, b.To = found[from:to], from+1, to
	if at > 0 {
		b.Previous = link("/items", "q", b.Query, "kind", b.Kind, "page", strconv.Itoa(at-1))
	}
	if to < len(found) {
		b.Next = link("/items", "q", b.Query, "kind", b.Kind, "page", strconv.Itoa(at+1))
	}
	c.show(w, r, http.StatusOK, "items", "Items", "/items", b)
}

// searchWords returns the words of a search in lower case, at most ten of them.
func searchWords(query string) []string {
	words, _ := atMost(strings.Fields(strings.ToLower(query)), 10)
	return words
}

// contains reports whether an item has all words, which are in lower case.
func contains(i control.ItemSummary, words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := strings.ToLower(i.Address + "\n" + i.Title + "\n" + i.Summary + "\n" + i.Origin)
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// itemBody is the data of the page of an item.
type itemBody struct {
	control.ItemResult
	Inputs, Outputs         []description
	MoreInputs, MoreOutputs bool
	Try                     tryBody
}

// tryBody is the data of the form that calls an item.
type tryBody struct {
	CSRF   string
	Item   control.ItemName
	Action string // the address of the form
	Form   form
	URI    string // of a template, for the values of the form; "" if they are not complete
	As     asForm
	// CanRecord reports that a call can be recorded as a test, and Record that the box is checked.
	CanRecord, Record bool
	Copies            []copyText
	Run               *runView // the last call; nil if there is none
}

// itemName returns the item that a request names.
func itemName(r *http.Request) control.ItemName {
	query := r.URL.Query()
	return control.ItemName{Kind: query.Get("kind"), Address: query.Get("address")}
}

// item shows an item and the form to try it.
func (c *Console) item(w http.ResponseWriter, r *http.Request) {
	row, ok := c.itemOf(w, r, itemName(r))
	if !ok {
		return
	}
	c.showItem(w, r, row, formOf("", schemaOf(row), nil, nil), asForm{}, nil)
}

// itemOf asks the server for an item. It writes the response if there is none.
func (c *Console) itemOf(w http.ResponseWriter, r *http.Request, name control.ItemName) (row control.ItemResult, ok bool) {
	if err := c.do(r, control.Item, name, &row); err != nil {
		c.fail(w, r, "/items", err)
		return row, false
	}
	return row, true
}

// showItem shows an item with a form and the call that it made, if any.
func (c *Console) showItem(w http.ResponseWriter, r *http.Request, row control.ItemResult, f form, as asForm, run *run) {
	body := itemBody{ItemResult: row, Try: tryBody{Item: row.ItemName, Form: f, As: as, Action: link("/item/try", "kind", row.Kind, "address", row.Address)}}
	body.Inputs, body.MoreInputs = describe(schemaOf(row))
	body.Outputs, body.MoreOutputs = describe(row.Output)
	if s := c.sessionOf(r); s != nil {
		body.Try.CSRF = s.csrf
	}
	var arguments json.RawMessage = []byte("{}")
	if run != nil {
		v := run.view(body.Try.CSRF)
		body.Try.Run, arguments = &v, run.call.Arguments
	}
	if row.Kind == "template" {
		body.Try.URI, _ = f.expand(row.Address) // shown only if it is complete
	}
	body.Try.Form.Fields = slices.Clone(f.Fields) // requests for the page of a run share its form
	for i := range body.Try.Form.Fields {
		field := &body.Try.Form.Fields[i]
		if strings.Contains(field.Value, "\n") {
			continue
		}
		if row.Kind == "template" {
			field.Widget = "line"
		}
		if slices.ContainsFunc(row.Arguments, func(a control.Argument) bool { return a.Completes && a.Name == field.Label }) {
			field.Widget, field.Complete = "line", link("/item/complete", "kind", row.Kind, "address", row.Address, "argument", field.Label)
		}
	}
	body.Try.CanRecord = c.options.Base == "" && row.Kind == "tool" && row.Origin == "file"
	body.Try.Record = r.PostForm.Has("record") || run != nil && run.call.Record
	var s status
	if _, err := c.ask(r, control.Request{Action: control.Status}, &s); err == nil { // only the address is missing otherwise
		body.Try.Copies = c.copies(row.ItemName, arguments, s.Listeners)
	}
	title := row.Title
	if title == "" {
		title = row.Address
	}
	c.show(w, r, http.StatusOK, "item", cut(title, maxName), "/items", body)
}

// complete writes the options that complete an argument of a posted form. They are only a help, so that
// without an answer there are none.
func (c *Console) complete(w http.ResponseWriter, r *http.Request) {
	of := control.CompleteQuery{ItemName: itemName(r), Argument: r.URL.Query().Get("argument"), Arguments: map[string]string{}}
	for name, values := range r.PostForm {
		if pointer, ok := strings.CutPrefix(name, "arg/"); ok && values[0] != "" {
			of.Arguments[memberName(pointer)] = values[0]
		}
	}
	of.Value = of.Arguments[of.Argument]
	delete(of.Arguments, of.Argument)
	var row control.CompleteResult
	select {
	case c.completing <- struct{}{}:
		_ = c.do(r, control.Complete, of, &row)
		<-c.completing
	default: // too many at once
	}
	values := slices.DeleteFunc(row.Values, func(v string) bool { return hides(v, oneLine) || len(v) > maxText })
	content, err := c.render("item", "options", values[:min(len(values), maxCompletions)])
	if err != nil {
		http.Error(w, "The options cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(content) // a browser that is gone needs no options
}

// copyText is a text to copy: a command or a configuration that makes the same call.
type copyText struct{ Name, Text string }

// copies returns commands that call an item with arguments, and the configuration of a client.
func (c *Console) copies(of control.ItemName, arguments json.RawMessage, listeners []string) []copyText {
	var all []copyText
	add := func(name, text string) { all = append(all, copyText{name, text}) }
	if compact, err := json.Marshal(arguments); err == nil {
		arguments = compact
	}
	switch of.Kind {
	case "tool":
		add("mcpd call", "mcpd call "+shellQuote(of.Address)+" --json "+shellQuote(string(arguments)))
		if i := slices.IndexFunc(listeners, func(l string) bool { return strings.HasPrefix(l, "http") }); i >= 0 {
			body, _ := json.Marshal(map[string]any{"tool": of.Address, "arguments": arguments}) // strings and JSON
			add("curl", "curl -s "+shellQuote(strings.TrimSuffix(listeners[i], "/")+"/execute")+" -H 'Content-Type: application/json' \\\n  -d "+shellQuote(string(body)))
		}
	case "resource":
		add("mcpd read", "mcpd read "+shellQuote(of.Address))
	case "prompt":
		add("mcpd prompt", "mcpd prompt "+shellQuote(of.Address)+" --json "+shellQuote(string(arguments)))
	}
	if len(c.options.Attach) > 0 {
		client, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"mcpd": map[string]any{"command": c.options.Attach[0], "args": c.options.Attach[1:]}}}, "", "  ")
		if err == nil {
			add("client configuration", string(client))
		}
	}
	return all
}

// shellQuote quotes text for a shell. Characters that a terminal would obey are escapes of $'…'.
func shellQuote(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == '\n' || r == '\t' || unseen(r) }) < 0 {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r > 0xffff && unseen(r):
			b.WriteString(`\U` + padded(r, 8))
		case r == '\n' || r == '\t' || unseen(r):
			b.WriteString(`\u` + padded(r, 4))
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "'"
}

// padded returns a number in hexadecimal with n digits.
func padded(r rune, n int) string {
	digits := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, n-len(digits))) + digits
}
