package hclfile

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// Secret is a secret block. Exactly one of Env, File, Command and OAuth is set.
type Secret struct {
	Name    string
	Env     string
	File    string
	Command []string
	OAuth   *OAuth
	// Reveal lets scripts read the value that are granted it.
	Reveal bool
	Range  diag.Range
}

// secretSources are where the value of a secret may come from.
var secretSources = []string{"env", "file", "command", "oauth"}

// declaredSecrets returns the names of all secret blocks, before any is decoded.
func declaredSecrets(all []*hclsyntax.Block) []string {
	var names []string
	for _, b := range all {
		if b.Type == "secret" {
			names = append(names, b.Labels[0])
		}
	}
	return names
}

// secrets decodes the secret blocks.
func (d *decoder) secrets(all []*hclsyntax.Block) []Secret {
	var secrets []Secret
	taken := named{}
	for _, b := range all {
		if b.Type != "secret" {
			continue
		}
		d.claim(taken, b)
		d.checkIdentifier("the secret", b.Labels[0], b.LabelRanges[0])
		d.checkBody(b)
		s := Secret{Name: b.Labels[0], Range: d.f.rng(b.DefRange())}
		s.Env, _ = d.text(b.Body, "env")
		s.File, _ = d.text(b.Body, "file")
		command, _ := d.strings(b.Body, "command")
		s.Command = textsOf(command)
		s.OAuth = d.oauth(first(b.Body, "oauth"))
		s.Reveal, _ = d.boolean(b.Body, "reveal", false)
		if s.Reveal && s.OAuth != nil && s.OAuth.AuthorizeURL != "" {
			d.fail("contradiction", d.f.rng(b.Body.Attributes["reveal"].NameRange), "a token of a user cannot be revealed to scripts", "remove it: the token goes into the header of a grant")
		}
		d.oneSource(b)
		secrets = append(secrets, s)
	}
	d.checkClients(secrets)
	d.checkDoors(secrets)
	return secrets
}

// oneSource reports a secret that comes from nowhere, or from two places.
func (d *decoder) oneSource(b *hclsyntax.Block) {
	var sources []hcl.Range
	for _, name := range secretSources {
		if attr := b.Body.Attributes[name]; attr != nil {
			sources = append(sources, attr.NameRange)
			if v, ok := d.eval.value(attr.Expr); ok && (hasKind(v, stringKind) && v.AsString() == "" || hasKind(v, listKind) && v.LengthInt() == 0) {
				d.fail("bad-value", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q is empty", name), "say where the secret comes from")
			}
		}
	}
	if client := first(b.Body, "oauth"); client != nil {
		sources = append(sources, client.TypeRange)
	}
	switch {
	case !d.meant(b.Body, rules["secret"], secretSources...):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the secret comes from nowhere", "write env = \"NAME\", file = \"/path\", command = [\"…\"] or an oauth block")
	case len(sources) > 1:
		d.fail("contradiction", d.f.rng(sources[1]), "the secret comes from two places", "keep one of env, file, command and oauth",
			diag.Note{Range: d.f.rng(sources[0]), Message: "the first one is here"})
	}
}

// checkClients reports clients whose own secret is a token: somebody has to
// prove who asks for the first one.
func (d *decoder) checkClients(secrets []Secret) {
	for _, s := range secrets {
		if s.OAuth == nil {
			continue
		}
		tokens := func(other Secret) bool { return other.Name == s.OAuth.ClientSecret && other.OAuth != nil }
		if i := slices.IndexFunc(secrets, tokens); i >= 0 {
			d.fail("contradiction", s.OAuth.secretRange, fmt.Sprintf("the secret of the client is itself a token, of the secret %q", secrets[i].Name),
				"use a secret that comes from env, file or command", diag.Note{Range: secrets[i].Range, Message: "that secret"})
		}
	}
}

// checkDoors reports two secrets whose users come back to one place: only one of
// them could listen there, and a code would not say whose server has given it.
func (d *decoder) checkDoors(secrets []Secret) {
	doors := map[string]diag.Range{}
	for _, s := range secrets {
		if s.OAuth == nil || s.OAuth.RedirectURL == "" {
			continue
		}
		u, err := url.Parse(s.OAuth.RedirectURL)
		if err != nil {
			continue // who decoded it has told
		}
		door, own := "port "+u.Port(), "give each a port of its own"
		if isFront(u) {
			door, own = u.Path, "give each a path of its own"
		}
		if first, taken := doors[door]; taken {
			d.fail("contradiction", s.OAuth.redirectRange, "the users of two secrets come back to "+door, own,
				diag.Note{Range: first, Message: "the first one is here"})
			continue
		}
		doors[door] = s.OAuth.redirectRange
	}
}
