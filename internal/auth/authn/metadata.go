package authn

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// MetadataPath is where clients look for the metadata of a server at the root of
// its host. Below it they look for that of a server at the path that follows
// (RFC 9728 section 3.1).
const MetadataPath = "/.well-known/oauth-protected-resource"

// metadataURL returns where the metadata of a resource stands.
func metadataURL(resource string) string {
	u, err := url.Parse(resource)
	if err != nil {
		return "" // options were checked
	}
	u.Path, u.RawPath = metadataPath(u), ""
	return u.String()
}

func metadataPath(u *url.URL) string { return MetadataPath + strings.TrimSuffix(u.Path, "/") }

// describe fills in the resource that tokens are for, and its metadata.
func (s *set) describe() error {
	for _, t := range s.tokens {
		if s.resource != "" && t.Resource != "" && t.Resource != s.resource {
			return errors.New("two methods name different resources; a server is one: write the same for both")
		}
		if t.Resource != "" {
			s.resource = t.Resource
		}
	}
	if s.resource == "" {
		return nil
	}
	var issuers []string
	for _, t := range s.tokens {
		if !slices.Contains(issuers, t.Issuer) {
			issuers = append(issuers, t.Issuer)
		}
	}
	var err error
	s.metadata, err = json.Marshal(struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{s.resource, issuers, s.scopes(), []string{"header"}})
	if err != nil {
		return fmt.Errorf("encode metadata: %w", err)
	}
	return nil
}

// scopes returns the scopes that tokens need.
func (s *set) scopes() []string {
	var all []string
	for _, t := range s.tokens {
		for _, scope := range t.RequiredScopes {
			if !slices.Contains(all, scope) {
				all = append(all, scope)
			}
		}
	}
	return all
}

// Metadata returns the metadata of this server as a protected resource (RFC 9728
// section 2), as JSON. It is nil where no tokens are taken, or no resource is known.
func (r *Roster) Metadata() []byte { return r.set.Load().metadata }

// ServeMetadata answers with [Roster.Metadata] at [MetadataPath], and below it at
// the path of the resource; with 404 elsewhere and where there is none. Nobody has
// to prove anything to read it.
func (r *Roster) ServeMetadata(w http.ResponseWriter, req *http.Request) {
	s := r.set.Load()
	u, err := url.Parse(s.resource)
	if err != nil || s.metadata == nil || req.URL.Path != MetadataPath && req.URL.Path != metadataPath(u) {
		http.NotFound(w, req)
		return
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(s.metadata)
}
