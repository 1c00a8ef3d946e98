package catalog

import (
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
)

// addSecrets adds the definitions of secrets. Those of clients come last, as they
// name the definitions that prove them.
func (k *linker) addSecrets() {
	var clients []hclfile.Secret
	for _, s := range k.found.config.Secrets {
		if s.OAuth != nil {
			clients = append(clients, s)
			continue
		}
		k.addSecret(secrets.Def{Name: s.Name, Env: s.Env, File: s.File, Command: s.Command, Reveal: s.Reveal})
	}
	for _, s := range clients {
		k.addSecret(secrets.Def{Name: s.Name, Reveal: s.Reveal, OAuth: &oauth.Client{
			AuthorizeURL: s.OAuth.AuthorizeURL, RedirectURL: s.OAuth.RedirectURL, TokenURL: s.OAuth.TokenURL, ID: s.OAuth.ClientID, Secret: k.catalog.SecretKeys[s.OAuth.ClientSecret],
			Scopes: s.OAuth.Scopes, Params: s.OAuth.Params, InBody: s.OAuth.InBody, PrivateNetworks: s.OAuth.PrivateNetworks,
		}})
	}
}

func (k *linker) addSecret(def secrets.Def) {
	k.catalog.Secrets, k.catalog.SecretKeys[def.Name] = append(k.catalog.Secrets, def), def.Key()
}
