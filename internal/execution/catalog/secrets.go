package catalog

import (
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// secretsOf returns the definitions of secrets, and their keys by their names. Those of
// clients come last, as they name the definitions that prove them.
func secretsOf(blocks []definition.Secret) (defs []secrets.Def, keys map[string]string) {
	keys = map[string]string{}
	add := func(def secrets.Def) { defs, keys[def.Name] = append(defs, def), def.Key() }
	var clients []definition.Secret
	for _, s := range blocks {
		if s.OAuth != nil {
			clients = append(clients, s)
			continue
		}
		add(secrets.Def{Name: s.Name, Env: s.Env, File: s.File, Command: s.Command, Reveal: s.Reveal})
	}
	for _, s := range clients {
		add(secrets.Def{Name: s.Name, Reveal: s.Reveal, OAuth: &oauth.Client{
			AuthorizeURL: s.OAuth.AuthorizeURL, RedirectURL: s.OAuth.RedirectURL, TokenURL: s.OAuth.TokenURL, ID: s.OAuth.ClientID, Secret: keys[s.OAuth.ClientSecret],
			Scopes: s.OAuth.Scopes, Params: s.OAuth.Params, InBody: s.OAuth.InBody, PrivateNetworks: s.OAuth.PrivateNetworks,
		}})
	}
	return defs, keys
}
