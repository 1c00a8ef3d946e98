// Package oidc checks the access tokens of identity providers, for auth blocks of the kind "oidc".
// A program that imports the package links go-oidc and go-jose.
//
//	engine.Options{Extensions: []engine.Extension{oidc.New()}}
//
// Package serve checks the token of each request against the auth blocks of mcpd.hcl:
//
//	auth "oidc" "corp" {
//	  issuer   = "https://login.example.com"
//	  audience = "https://mcp.example.com/mcp"
//	}
package oidc

import (
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/auth/oidc"
)

// New returns the extension. Several engines may share it.
func New() engine.Extension { return &extension{} }

type extension struct{ oidc.Protocol }

// Name returns the package name.
func (*extension) Name() string { return "extensions/oidc" }
