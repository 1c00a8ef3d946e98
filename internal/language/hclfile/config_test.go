package hclfile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// decodeConfig decodes a config file.
func decodeConfig(t *testing.T, source string, values definition.VarValues) (*definition.Config, diag.List) {
	t.Helper()
	file, problems := Parse(Source{Path: "mcpd.hcl", Bytes: []byte(source)}, ConfigKind)
	if file == nil {
		t.Fatal(problems)
	}
	c, more := file.DecodeConfig(values)
	return c, append(problems, more...)
}

func TestDecodeConfig_allBlocks(t *testing.T) {
	c, problems := decodeConfig(t, `
server {
  name         = "customer-mcp"
  title        = "Customers"
  version      = "1.0.0"
  description  = "Tools of ${var.stage}"
  instructions = "Look a customer up before you act on one."
  mode         = "production"
}
listen {
  address = "127.0.0.1:8080"
  hosts   = ["mcp.internal"]
  origins = ["https://app.example.com:8443"]
}
reload {
  watch         = false
  require_tests = true
}
limits { concurrency = 256 }
ceiling {
  http_hosts       = ["*.internal:443", "*:443", "api.example.com:*"]
  private_networks = ["*.Internal:443"]
}
variable "stage" {
  type        = string
  description = "Where it runs"
  default     = "dev"
}
secret "crm_token" { env = "CRM_TOKEN" }
secret "github" { file = "/run/secrets/github" }
secret "vault" { command = ["vault", "read"] }
policy "prod_is_read_only" {
  deny     = "vars.stage == 'prod'"
  reason   = "Blocked in prod"
  disclose = "hide"
}
limit "per_caller" {
  resources   = ["*"]
  key         = "principal.id"
  rate        = "60/m"
  burst       = 10
  concurrency = 4
  reason      = "Slow down"
}
limit "all" {
  rate             = "5/h"
  on_store_failure = "allow"
}
hook "alert" {
  on      = ["error", "end"]
  tools   = ["*"]
  timeout = "2s"
  run     = "log.info('x')"
}
`, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	ignored := cmp.FilterPath(func(p cmp.Path) bool {
		return strings.HasSuffix(p.Last().String(), "Range") || p.Last().String() == ".Hashes" || p.Last().String() == ".decoded"
	}, cmp.Ignore())
	texts := cmp.Transformer("body", func(t diag.Text) string { return t.Body() })
	want := &definition.Config{
		Server: definition.Server{
			Name: "customer-mcp", Title: "Customers", Version: "1.0.0", Description: "Tools of dev",
			Instructions: "Look a customer up before you act on one.", Mode: definition.Production, DefaultDecision: definition.DecideDeny,
		},
		Listen:  definition.Listen{Address: "127.0.0.1:8080", Hosts: []string{"mcp.internal"}, Origins: []string{"https://app.example.com:8443"}},
		Reload:  definition.Reload{RequireTests: true},
		Limits:  definition.Limits{Concurrency: 256},
		Ceiling: &definition.Ceiling{HTTPHosts: []definition.Name{{Text: "*.internal:443"}, {Text: "*:443"}, {Text: "api.example.com:*"}}, PrivateNetworks: []definition.Name{{Text: "*.internal:443"}}},
		Variables: map[string]definition.Variable{"stage": {
			Name: "stage", Description: "Where it runs", Type: []byte(`{"type":"string"}`), Value: []byte(`"dev"`),
		}},
		Secrets: []definition.Secret{
			{Name: "crm_token", Env: "CRM_TOKEN"}, {Name: "github", File: "/run/secrets/github"}, {Name: "vault", Command: []string{"vault", "read"}},
		},
		Policies: []definition.Policy{{
			Name: "prod_is_read_only", Deny: &definition.Code{Language: definition.CEL, Text: diag.WholeFile("", "vars.stage == 'prod'")},
			Reason: "Blocked in prod", Disclose: definition.DiscloseHide,
		}},
		RateLimits: []definition.Limit{{
			Name: "per_caller", Targets: definition.Targets{Tools: []definition.Name{}, Resources: []definition.Name{{Text: "*"}}, Prompts: []definition.Name{}},
			Key:   &definition.Code{Language: definition.CEL, Text: diag.WholeFile("", "principal.id")},
			Calls: 60, Per: time.Minute, Burst: 10, Concurrency: 4, Reason: "Slow down",
		}, {
			Name: "all", Calls: 5, Per: time.Hour, Burst: 5, FailOpen: true,
		}},
		Hooks: []definition.Hook{{
			Name: "alert", On: []string{definition.OnError, definition.OnEnd}, Targets: definition.Targets{Tools: []definition.Name{{Text: "*"}}, Resources: []definition.Name{}, Prompts: []definition.Name{}}, Timeout: 2 * time.Second,
			Run: definition.Code{Language: definition.JavaScript, Text: diag.WholeFile("", "log.info('x')")},
		}},
	}
	if diff := cmp.Diff(want, c, ignored, texts); diff != "" {
		t.Error(diff)
	}
	if got := c.Policies[0].Deny.Text.Pos(0); got.Line != 33 || got.Column != 15 {
		t.Errorf("the code of the policy has position %+v", got)
	}
}

func TestDecodeConfig_defaults(t *testing.T) {
	c, problems := decodeConfig(t, "", nil)
	want := &definition.Config{Server: definition.Server{Mode: definition.Development, DefaultDecision: definition.DecideAllow}, Reload: definition.Reload{Watch: true}, Variables: map[string]definition.Variable{}}
	c.Range = diag.Range{}
	if diff := cmp.Diff(want, c); diff != "" || len(problems) > 0 {
		t.Error(diff, problems)
	}
	if got := string(c.VarsSchema()) + string(c.VarsJSON()); got != `{"type":"object","properties":{},"additionalProperties":false}{}` {
		t.Error(got)
	}
}

const variables = `
variable "word" { type = string }
variable "number" { type = number }
variable "whole" { type = integer }
variable "flag" { type = bool }
variable "list" { type = list(string) }
variable "object" { type = object({ a = string, b = optional(number) }) }
variable "any" { default = [1] }
variable "token" {
  type      = string
  sensitive = true
  default   = "hunter2"
}
`

func TestVariables_suppliedValues(t *testing.T) {
	c, problems := decodeConfig(t, variables, definition.VarValues{
		"word": {Text: "a \"b\""}, "number": {Text: "-1.5"}, "whole": {Text: "12"}, "flag": {Text: "true"},
		"list": {Text: `["a", "b"]`}, "object": {Text: `{a = "x", b = 2}`}, "any": {Text: "[2]"},
		"unknown": {Text: "x", Origin: "MCPD_VAR_unknown"},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := `{"any":"[2]","flag":true,"list":["a","b"],"number":-1.5,"object":{"a":"x","b":2},"token":"hunter2","whole":12,"word":"a \"b\""}`
	if diff := cmp.Diff(want, string(c.VarsJSON())); diff != "" {
		t.Error(diff)
	}
	schema := `{"type":"object","properties":{"any":{},"flag":{"type":"boolean"},"list":{"type":"array","items":{"type":"string"}},` +
		`"number":{"type":"number"},"object":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}},"required":["a"],"additionalProperties":false},` +
		`"token":{"type":"string"},"whole":{"type":"integer"},"word":{"type":"string"}},` +
		`"required":["any","flag","list","number","object","token","whole","word"],"additionalProperties":false}`
	if diff := cmp.Diff(schema, string(c.VarsSchema())); diff != "" {
		t.Error(diff)
	}
	if !c.Variables["token"].Sensitive {
		t.Error("the token is not sensitive")
	}
}

func TestVariables_invalidValues(t *testing.T) {
	_, problems := decodeConfig(t, variables, definition.VarValues{
		"word": {Text: strings.Repeat("x", maxText+1), Origin: "--var"}, "number": {Text: "s3cret", Origin: "--var"}, "whole": {Text: "1.5", Origin: "--var"},
		"flag": {Text: "s3cret(", Origin: "MCPD_VAR_flag"}, "list": {Text: `["s3cret", 1]`, Origin: "a.mcpdvars:1:1"},
		"object": {Text: strings.Repeat("(", 1000), Origin: "--var"}, "objekt": {Text: "s3cret", Origin: "--var"},
	})
	got := problems.Error()
	for _, want := range []string{
		`--var: the value of "word" is not a string`, `--var: the value of "number" is not a number; write digits`, `--var: the value of "whole" is not an integer`,
		`MCPD_VAR_flag: the value of "flag" is not a bool; write true or false`, `a.mcpdvars:1:1: the value of "list" is not a list`,
		`--var: the value of "object" is not an object`, `--var: there is no variable "objekt"; did you mean "object"?`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(got, "s3cret") || len(problems) != 7 {
		t.Error(got)
	}
}

func TestParseVars(t *testing.T) {
	values, problems := ParseVars(Source{Path: "prod.mcpdvars", Bytes: []byte("stage = \"prod\"\nlist  = [1, { a = null }]\n")})
	want := definition.VarValues{"stage": {Text: "prod", Origin: "prod.mcpdvars:1:1"}, "list": {Text: `[1,{"a":null}]`, Origin: "prod.mcpdvars:2:1"}}
	if diff := cmp.Diff(want, values); diff != "" || len(problems) > 0 {
		t.Error(diff, problems)
	}
	if _, problems := ParseVars(Source{Path: "x.mcpdvars", Bytes: []byte("a = var.b\nserver {\n}\n")}); len(problems) != 2 {
		t.Error(problems)
	}
}

func TestOAuth_allArguments(t *testing.T) {
	c, problems := decodeConfig(t, `
variable "stage" { default = "dev" }
secret "token" {
  oauth {
    token_url        = "https://login.${var.stage}.example.com/token"
    client_id        = "mcpd"
    client_secret    = secret.client
    scopes           = ["read", "write"]
    audience         = "crm"
    params           = { resource = "all" }
    auth_style       = "body"
    private_networks = true
  }
}
secret "client" { file = "/run/client" }
`, nil)
	want := &definition.OAuth{
		TokenURL: "https://login.dev.example.com/token", ClientID: "mcpd", ClientSecret: "client", Scopes: []string{"read", "write"},
		Params: map[string]string{"resource": "all", "audience": "crm"}, CredentialsInBody: true, PrivateNetworks: true,
	}
	if diff := cmp.Diff(want, c.Secrets[0].OAuth, cmp.AllowUnexported(definition.OAuth{}), cmp.FilterPath(func(p cmp.Path) bool { return strings.HasSuffix(p.Last().String(), "Range") }, cmp.Ignore())); diff != "" || len(problems) > 0 {
		t.Error(diff, problems)
	}
}

func TestAudit_allArguments(t *testing.T) {
	c, problems := decodeConfig(t, `
audit {
  path     = "audit/mcpd.jsonl"
  mode     = "strict"
  max_size = "1GiB"
  keep     = 3
  max_age  = "90d"
  capture  = ["refund_*", "gh/issue"]
}`, nil)
	want := &definition.Audit{
		Path: "audit/mcpd.jsonl", Mode: definition.AuditStrict, MaxSize: 1 << 30, MaxFiles: 3, MaxAge: 90 * 24 * time.Hour,
		Capture: []definition.Name{{Text: "refund_*"}, {Text: "gh/issue"}},
	}
	if diff := cmp.Diff(want, c.Audit, cmpopts.IgnoreTypes(diag.Range{})); diff != "" || len(problems) > 0 {
		t.Errorf("(-want +got)\n%s%v", diff, problems)
	}
}

func TestAudit_absent(t *testing.T) {
	if c, problems := decodeConfig(t, `server { name = "x" }`, nil); c.Audit != nil || len(problems) > 0 {
		t.Errorf("%+v %v", c.Audit, problems)
	}
}

// authOfEachKind has every argument of auth blocks, and blocks without arguments.
const authOfEachKind = `
listen {
  address = "0.0.0.0:8443"
  tls {
    cert_file      = "server.pem"
    key_file       = "server.key"
    client_ca_file = "fleet.pem"
  }
}
auth "api_key" "ops" {
  file = "ops.json"
}
auth "api_key" "ci" {
}
auth "oidc" "corp" {
  issuer          = "https://login.example.com/"
  audience        = "https://mcp.example.com/mcp"
  resource        = "https://mcp.example.com/mcp"
  algorithms      = ["ES256"]
  id              = "email"
  scopes          = "permissions"
  groups          = "realm.roles"
  agent           = "client_id"
  required_scopes = ["mcp"]
  implied_scopes  = { admin = ["crm.write"], "crm.write" = ["crm.read"] }
  skew            = "30s"
}
auth "oidc" "dev" {
  issuer   = "http://localhost:9000"
  audience = "mcp"
}
auth "mtls" "fleet" {
  allow = ["spiffe://fleet/*"]
  agent = true
}
auth "unix" "admins" {
  uids = [0, 1000]
  gids = [4294967294]
}
auth "anonymous" "public" {
}
`

func TestAuth_allKinds(t *testing.T) {
	c, problems := decodeConfig(t, authOfEachKind, definition.VarValues{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []definition.Auth{
		{Kind: "api_key", Name: "ops", APIKeys: &definition.AuthAPIKeys{File: "ops.json"}},
		{Kind: "api_key", Name: "ci", APIKeys: &definition.AuthAPIKeys{File: "keys.json"}},
		{Kind: "oidc", Name: "corp", JWT: &definition.AuthJWT{
			Issuer: "https://login.example.com/", Audience: "https://mcp.example.com/mcp", Resource: "https://mcp.example.com/mcp",
			Algorithms: []string{"ES256"}, ID: "email", Scopes: "permissions", Groups: "realm.roles", Agent: "client_id",
			RequiredScopes: []string{"mcp"}, ImpliedScopes: map[string][]string{"admin": {"crm.write"}, "crm.write": {"crm.read"}}, Skew: 30 * time.Second,
		}},
		{Kind: "oidc", Name: "dev", JWT: &definition.AuthJWT{Issuer: "http://localhost:9000", Audience: "mcp", Skew: time.Minute}},
		{Kind: "mtls", Name: "fleet", MTLS: &definition.AuthMTLS{Allow: []string{"spiffe://fleet/*"}, Agent: true}},
		{Kind: "unix", Name: "admins", UnixPeers: &definition.AuthUnixPeers{UIDs: []uint32{0, 1000}, GIDs: []uint32{4294967294}}},
		{Kind: "anonymous", Name: "public"},
	}
	if diff := cmp.Diff(want, c.Auths, cmpopts.IgnoreTypes(diag.Range{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	tls := &definition.ListenTLS{CertFile: "server.pem", KeyFile: "server.key", ClientCAFile: "fleet.pem"}
	if diff := cmp.Diff(tls, c.Listen.TLS, cmpopts.IgnoreTypes(diag.Range{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
