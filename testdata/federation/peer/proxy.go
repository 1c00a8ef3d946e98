package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"testing/fstest"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/serve"
)

// proxy is an mcpd with the server of a scenario as its upstream.
type proxy struct{ server *engine.Server }

// block is the config file, without the additions of a scenario.
const block = `
upstream "suite" {
  url    = %q
  prefix = ""
  ask    = ["elicit", "sample", "roots"]
  %s
}
`

// open connects to the server of a scenario.
func open(ctx context.Context, scenario, at string) (*proxy, error) {
	file := fmt.Sprintf(block, at, "")
	if scenario == "auth/client-credentials-basic" {
		header, secrets, err := credentials(ctx, at)
		if err != nil {
			return nil, err
		}
		file = fmt.Sprintf(block, at, header) + secrets
	}
	s, err := engine.New(engine.Options{
		Name: "mcpd", Version: "1.0.0", Extensions: []engine.Extension{federation.New()}, Files: engine.Files{Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(file)}}, LookupEnv: os.LookupEnv},
		Front:  serve.Checks{},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.Load(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	for _, u := range s.Status().Upstreams {
		fmt.Fprintf(os.Stderr, "%s: up %t, speaks %s, left out: %q\n", u.Name, u.Up, u.Revision, u.LeftOut)
		if u.Err != nil {
			return nil, errors.Join(u.Err, s.Close(ctx))
		}
	}
	return &proxy{s}, nil
}

// credentials returns the blocks that an operator would write: mcpd does not
// discover the token endpoint itself (RFC 9728, RFC 8414).
func credentials(ctx context.Context, at string) (header, secrets string, err error) {
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	var resource struct {
		Servers []string `json:"authorization_servers"`
	}
	var server struct {
		Token string `json:"token_endpoint"`
	}
	u, err := url.Parse(at)
	if err != nil {
		return "", "", err
	}
	if err := json.Unmarshal([]byte(os.Getenv(contextVariable)), &given); err != nil {
		return "", "", err
	}
	if err := fetch(ctx, u.Scheme+"://"+u.Host+"/.well-known/oauth-protected-resource"+u.Path, &resource); err != nil {
		return "", "", err
	}
	if err := fetch(ctx, resource.Servers[0]+"/.well-known/oauth-authorization-server", &server); err != nil {
		return "", "", err
	}
	if err := os.Setenv("SUITE_SECRET", given.Secret); err != nil {
		return "", "", err
	}
	return `header "Authorization" { value = "Bearer ${secret.token}" }`, fmt.Sprintf(`
secret "suite" { env = "SUITE_SECRET" }
secret "token" {
  oauth {
    token_url        = %q
    client_id        = %q
    client_secret    = secret.suite
    private_networks = true
  }
}
`, server.Token, given.ID), nil
}

func fetch(ctx context.Context, at string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", at, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// nothing only connects and lists.
func (p *proxy) nothing(context.Context) error { return nil }

// everything uses each offer once, with valid arguments.
func (p *proxy) everything(ctx context.Context) error {
	var problems []error
	for _, tool := range p.server.Snapshot().Tools() {
		problems = append(problems, p.use(ctx, call.Tools, tool.Name(), fitting(tool.Metadata().InputSchema)))
	}
	for _, kind := range []call.Kind{call.Resources, call.Prompts} {
		for _, offer := range p.server.Snapshot().Offers(kind) {
			problems = append(problems, p.use(ctx, kind, offer.Metadata().Address, nil))
		}
	}
	return errors.Join(problems...)
}

// echo passes the schema of one tool, as clients of mcpd see it, to the other
// tool.
func (p *proxy) echo(ctx context.Context) error {
	arguments, err := json.Marshal(map[string]json.RawMessage{"schema": p.server.Snapshot().Tool("json_schema_2020_12_tool").Metadata().InputSchema})
	return errors.Join(err, p.use(ctx, call.Tools, "json_schema_echo", arguments))
}

// use makes one call to its end, and accepts every input request.
func (p *proxy) use(ctx context.Context, kind call.Kind, name string, arguments json.RawMessage) error {
	r := call.Request{
		Kind: kind, Name: name, Arguments: arguments,
		Can:    call.Capabilities{Form: true, URL: true, Sample: true, Roots: true},
		Caller: identity.Caller{Principal: identity.Anonymous(), Source: identity.Source{Listener: "local"}},
	}
	for {
		result := p.server.Execute(ctx, r)
		fmt.Fprintf(os.Stderr, "%s %s: %s%s %v\n", name, arguments, result.Content, result.Reply, result.Err)
		switch {
		case result.Err != nil:
			return fmt.Errorf("%s: %w", name, result.Err)
		case result.Ask == nil:
			return nil
		}
		r.Resume = &call.Resume{State: result.Ask.State, Responses: map[string]json.RawMessage{}}
		for _, asked := range result.Ask.Requests {
			r.Resume.Responses[asked.Key] = accepted(asked.Params)
		}
	}
}

// accepted returns the answer of a user who changes no field: the defaults of
// the form (2025-11-25 client/elicitation, Default Values).
func accepted(question json.RawMessage) json.RawMessage {
	var asked struct {
		RequestedSchema struct {
			Properties map[string]struct{ Default json.RawMessage }
		}
	}
	_ = json.Unmarshal(question, &asked) // other requests have no fields
	content := map[string]json.RawMessage{}
	for name, field := range asked.RequestedSchema.Properties {
		if field.Default != nil {
			content[name] = field.Default
		}
	}
	// Decoded members always encode.
	answer, _ := json.Marshal(map[string]any{"action": "accept", "content": content})
	return answer
}

// fitting returns arguments that match a plain schema.
func fitting(schema json.RawMessage) json.RawMessage {
	var object struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	_ = json.Unmarshal(schema, &object) // the schema of an offered tool
	values := map[string]any{"number": 2, "integer": 2, "boolean": true, "object": map[string]any{}, "array": []any{}, "string": "text"}
	arguments := map[string]any{}
	for _, name := range object.Required {
		arguments[name] = values[object.Properties[name].Type]
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(arguments)
	return encoded
}
