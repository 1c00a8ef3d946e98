package extensions_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/serve"
)

// provider is an OpenID provider with one signing key.
type provider struct {
	*httptest.Server
	key ed25519.PrivateKey
}

func newProvider() provider {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	p := provider{httptest.NewServer(mux), key}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"%s/keys"}`, p.URL, p.URL)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","use":"sig","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	})
	return p
}

// token returns an access token (RFC 9068) of the user for an audience.
func (p provider) token(user, audience string) string {
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"k1","typ":"at+jwt"}`))
	claims := fmt.Sprintf(`{"iss":%q,"sub":%q,"aud":%q,"exp":%d}`, p.URL, user, audience, time.Now().Add(time.Hour).Unix())
	signed := header + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(p.key, []byte(signed)))
}

// A request without a token is rejected. With a token, the tool sees the user.
func Example_oidc() {
	corp := newProvider()
	defer corp.Close()
	server, err := engine.New(engine.Options{
		Name: "shop",
		Files: engine.Files{
			Config: fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, `
auth "oidc" "corp" {
  issuer     = %q
  audience   = "https://mcp.example.com/mcp"
  algorithms = ["EdDSA"]
}
`, corp.URL), Mode: 0o644}},
			Tools: fstest.MapFS{"whoami.hcl": {Data: []byte(`
tool "whoami" {
  input "user" {
    type = string
    from = "principal.id"
  }
  run = "return input.user"
}
`), Mode: 0o644}},
		},
		Scripts:    engine.Scripts{Executor: scripting.Inline()},
		Extensions: []engine.Extension{oidc.New()},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close(context.Background())
	handler, err := serve.New(server, serve.Options{}).Handler()
	if err != nil {
		log.Fatal(err)
	}
	site := httptest.NewServer(handler)
	defer site.Close()
	for _, authorization := range []string{"", "Bearer " + corp.token("ada", "https://mcp.example.com/mcp")} {
		request, err := http.NewRequest(http.MethodPost, site.URL+"/mcp/execute", strings.NewReader(`{"tool":"whoami","arguments":{}}`))
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		fmt.Println(response.Status, strings.TrimSpace(string(body)))
	}
	// Output:
	// 401 Unauthorized {"error":"POLICY_DENIED","message":"no credential was sent, and this server requires one"}
	// 200 OK {"result":"ada"}
}
