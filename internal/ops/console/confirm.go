package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// confirmation is an action that the operator must confirm. The parameters of its address name its
// object.
type confirmation struct {
	Title, Question, Button string
	Section                 string
	names                   []string // of the parameters
	do                      func(c *Console, r *http.Request, q url.Values) error
}

// actions are the actions by their name in the address.
var actions = map[string]confirmation{
	"accept": {
		"Accept a tool", "The server will serve the tool as the upstream server offers it now.", "Accept the tool", "/upstreams", []string{"upstream", "tool", "digest"},
		func(c *Console, r *http.Request, q url.Values) error {
			return c.do(r, control.Accept, control.PinName{Upstream: q.Get("upstream"), Tool: q.Get("tool"), Digest: q.Get("digest")}, new(any))
		},
	},
	"revoke_key": {
		"Revoke an API key", "Requests with this key will be refused. This cannot be undone.", "Revoke the key", "/access", []string{"auth", "id"},
		func(c *Console, r *http.Request, q url.Values) error {
			return c.do(r, control.RevokeKey, control.KeyName{Auth: q.Get("auth"), ID: q.Get("id")}, new(any))
		},
	},
	"drop_token": {
		"Drop a token", "The principal must authorize mcpd again. The authorization server is not notified.", "Drop the token", "/access", []string{"secret", "principal", "kind", "issuer"},
		func(c *Console, r *http.Request, q url.Values) error {
			var dropped control.TokensResult
			_, err := c.ask(r, control.Request{Action: control.DropTokens, TokenFilter: control.TokenFilter{Secret: q.Get("secret"), Principal: q.Get("principal"), Kind: q.Get("kind"), Issuer: q.Get("issuer")}}, &dropped)
			switch {
			case err != nil:
				return err
			case dropped.Failure != "":
				return fmt.Errorf("some tokens were not dropped: %s", dropped.Failure)
			case len(dropped.Tokens) == 0:
				return errors.New("no token matches; it may have been dropped before")
			}
			return nil
		},
	},
	"cancel": {
		"Cancel a task", "The task ends without a result.", "Cancel the task", "/access", []string{"principal", "auth_kind", "issuer", "id"},
		func(c *Console, r *http.Request, q url.Values) error {
			return c.do(r, control.CancelTask, control.TaskName{Principal: q.Get("principal"), AuthKind: q.Get("auth_kind"), Issuer: q.Get("issuer"), ID: q.Get("id")}, new(any))
		},
	},
}

// confirmBody is the data of the page that asks for a confirmation.
type confirmBody struct {
	confirmation
	CSRF    string
	Address string // of the form
	Rows    [][2]string
	Change  []diffLine // what the upstream server changed, in full
}

// confirm asks whether to do something.
func (c *Console) confirm(w http.ResponseWriter, r *http.Request) {
	a, known := actions[r.PathValue("action")]
	if !known {
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	b := confirmBody{confirmation: a}
	if s := c.sessionOf(r); s != nil {
		b.CSRF = s.csrf
	}
	pairs := []string{}
	for _, name := range a.names {
		pairs = append(pairs, name, query.Get(name))
		if value := query.Get(name); value != "" {
			b.Rows = append(b.Rows, [2]string{name, value})
		}
	}
	b.Address = link(r.URL.Path, pairs...)
	if r.PathValue("action") == "accept" { // nothing is accepted unseen
		var pins []control.Pin
		if err := c.do(r, control.Pins, nil, &pins); err != nil {
			c.fail(w, r, a.Section, err)
			return
		}
		for _, p := range pins {
			if p.PinName == (control.PinName{Upstream: query.Get("upstream"), Tool: query.Get("tool"), Digest: query.Get("digest")}) {
				b.Change = diffLines(p.Change)
			}
		}
		if b.Change == nil {
			c.problem(w, r, http.StatusNotFound, a.Section, "The tool has changed", "The upstream server offers it differently now, or it was accepted. Look at the page of upstream servers again.")
			return
		}
	}
	c.show(w, r, http.StatusOK, "confirm", a.Title, a.Section, b)
}

// perform does what was confirmed.
func (c *Console) perform(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("action")
	a, known := actions[name]
	if !known {
		http.NotFound(w, r)
		return
	}
	if err := a.do(c, r, r.URL.Query()); err != nil {
		c.fail(w, r, a.Section, err)
		return
	}
	c.redirect(w, r, link(a.Section, "done", name))
}
