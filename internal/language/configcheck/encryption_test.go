package configcheck_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
)

func TestSecretsThatGoUnencryptedToOthersAreToldOf(t *testing.T) {
	const file = `server { mode = %q }
audit { path = "/a.jsonl" }
secret "k" { env = "K" }
upstream "crm" {
  url = "http://mcp.example.com/mcp"
  header "Accept-Language" { value = "en" }
  header "Authorization" { value = "Basic ${base64encode("u:${secret.k}")}" }
}
`
	const detail = "write https://; where its host is one of your own network, say so with private_networks = true"
	for mode, want := range map[string]string{
		"development": `mcpd.hcl:5:9: warning: the header "Authorization" brings a secret to this server unencrypted; ` + detail,
		"production":  `mcpd.hcl:5:9: error: the header "Authorization" brings a secret to this server unencrypted, and production mode demands https; ` + detail,
	} {
		if diff := cmp.Diff([]string{want}, said(configcheck.Check(config(t, fmt.Sprintf(file, mode)), nil, configcheck.Elsewhere{}))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", mode, diff)
		}
	}
}

func TestASecretMayGoUnencryptedWhereNobodyElseIs(t *testing.T) {
	const header = "  header \"X-Key\" { value = secret.k }\n"
	url := func(url string) string { return fmt.Sprintf("  url = %q\n", url) }
	for says, told := range map[string]bool{
		url("http://mcp.example.com:8080/mcp") + header: true,
		url("HTTP://MCP.EXAMPLE.COM/mcp") + header:      true,
		url("http://203.0.113.7/mcp") + header:          true,
		url("http://[2001:db8::7]/mcp") + header:        true,
		url("http://local.example.com/mcp") + header:    true,

		url("https://mcp.example.com/mcp") + header:                                             false,
		url("http://mcp.example.com/mcp"):                                                       false,
		url("http://mcp.example.com/mcp") + "  header \"Authorization\" { value = \"none\" }\n": false,
		url("http://mcp.example.com/mcp") + "  private_networks = true\n" + header:              false,
		url("http://localhost:8080/mcp") + header:                                               false,
		url("http://crm.localhost/mcp") + header:                                                false,
		url("http://127.0.0.2/mcp") + header:                                                    false,
		url("http://[::1]:8080/mcp") + header:                                                   false,
		url("http://10.1.2.3/mcp") + header:                                                     false,
		url("http://[fd00::7]/mcp") + header:                                                    false,
		url("http://169.254.1.2/mcp") + header:                                                  false,
		url("http://crm:8080/mcp") + header:                                                     false,
		url("http://crm.tools.svc/mcp") + header:                                                false,
		url("http://crm.tools.svc.cluster.local/mcp") + header:                                  false,
		url("http://crm.corp.internal/mcp") + header:                                            false,
		"  container {\n    image = \"crm:1\"\n    port  = 8001\n  }\n" + header:                false,
	} {
		got := configcheck.Check(config(t, "secret \"k\" { env = \"K\" }\nupstream \"crm\" {\n"+says+"}\n"), nil, configcheck.Elsewhere{})
		if strings.Contains(strings.Join(said(got), "\n"), "unencrypted") != told || len(got) > 1 {
			t.Errorf("%s\nsays %v, want it told: %t", says, said(got), told)
		}
	}
}
