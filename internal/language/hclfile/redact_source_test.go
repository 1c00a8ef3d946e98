package hclfile

import (
	"strings"
	"testing"
)

func TestRedactSecrets_literals(t *testing.T) {
	for _, test := range []struct{ path, shown, hidden string }{
		{"mcpd.hcl", `secret "k" { value = "hunter2" }`, `secret "k" { value = "*******" }`},
		{"mcpd.hcl", `secret "k" { value = 1234567 }`, `secret "k" { value = ******* }`},
		{"mcpd.hcl", "secret \"k\" {\n  value = \"hunter2\"\n  env   = \"NAME\"\n}\n", "secret \"k\" {\n  value = \"*******\"\n  env   = \"NAME\"\n}\n"},
		{"mcpd.hcl", "secret \"k\" {\n  oauth {\n    client_secret = \"hunter2\"\n    token_url = \"https://x.example/t\"\n    params = { key = \"hunter2\" }\n  }\n}\n", "secret \"k\" {\n  oauth {\n    client_secret = \"*******\"\n    token_url = \"https://x.example/t\"\n    params = { key = \"*******\" }\n  }\n}\n"},
		{"mcpd.hcl", "secret \"k\" {\n  value = <<EOT\nhunter2\nEOT\n}\n", "secret \"k\" {\n  value = <<EOT\n*******\nEOT\n}\n"},
		{"mcpd.hcl", "secret \"k\" { value = \"hunter2 }\n", "secret \"k\" { value = \"*********\n"},
		{"mcpd.hcl", "secret \"k { value = \"hunter2\n", "secret \"k { value = \"*******\n"},
		{"mcpd.hcl", `secret "k" { value = hunter2 }`, `secret "k" { value = ******* }`},
		{"mcpd.hcl", `secret "k" { value = var.hunter }`, `secret "k" { value = var.hunter }`},
		{"mcpd.hcl", "server { x = [\nsecret \"k\" {\n  value = \"hunter2\"\n}\n", "server { x = [\nsecret \"k\" {\n  value = \"*******\"\n}\n"},
		{"mcpd.hcl", `variable "v" {` + "\n" + `  default   = "hunter2"` + "\n  sensitive = true\n}\n", `variable "v" {` + "\n" + `  default   = "*******"` + "\n  sensitive = true\n}\n"},
		{"mcpd.hcl", `variable "v" { default = "shown" }`, `variable "v" { default = "shown" }`},
		{"mcpd.hcl.json", `{"secret": {"k": {"value": "hunter2", "env": "NAME"}}, "server": {"name": "shown"}}`, `{"secret": {"k": {"value": "*******", "env": "NAME"}}, "server": {"name": "shown"}}`},
		{"mcpd.hcl.json", `{"variable": {"v": {"default": "hunter2", "sensitive": true}}}`, `{"variable": {"v": {"default": "*******", "sensitive": true}}}`},
		{"t.hcl", `header "Authorization" { value = "Bearer hunter2" }`, `header "Authorization" { value = "**************" }`},
		{"t.hcl", `header "Authorization" { value = "Bearer ${secret.tokn}" }`, `header "Authorization" { value = "Bearer ${secret.tokn}" }`},
		{"t.hcl", `header "Accept" { value = "text/plain" }`, `header "Accept" { value = "text/plain" }`},
		{"t.hcl", `env = { GITHUB_TOKEN = "hunter2", LANG = "C" }`, `env = { GITHUB_TOKEN = "*******", LANG = "C" }`},
		{"t.hcl", `env = { GITHUB_TOKEN = ["hunter2", "x"], LANG = "C" }`, `env = { GITHUB_TOKEN = ["*******", "*"], LANG = "C" }`},
		{"t.hcl", `dsn = "postgres://mcpd:hunter2@db:5432/x"`, `dsn = "postgres://mcpd:*******@db:5432/x"`},
		{"t.hcl", `dsn = "postgres://mcpd:${secret.p}@db:5432/x"`, `dsn = "postgres://mcpd:${secret.p}@db:5432/x"`},
		{"t.hcl", `description = "a token for you" # the password`, `description = "a token for you" # the password`},
		{"t.hcl", `max_tokens = 100`, `max_tokens = 100`},
		{"site.mcpdvars", "admins = [\"ada\"]\nx = 42\n", "admins = [\"***\"]\nx = **\n"},
	} {
		if got := string(RedactSecrets(test.path, []byte(test.shown))); got != test.hidden {
			t.Errorf("%s\nis shown as\n%s\nwant\n%s", test.shown, got, test.hidden)
		}
	}
	if RedactSecrets("x.hcl", make([]byte, maxFile+1)) != nil {
		t.Error("a too large file is shown")
	}
}

func FuzzRedactSecrets(f *testing.F) {
	f.Add("secret \"k\" { value = \"hunter2\" }\n")
	f.Add("a = [{ token = <<EOT\nx\nEOT\n}, \"${\"y\"}\"]")
	f.Fuzz(func(t *testing.T, text string) {
		shown := string(RedactSecrets("x.hcl", []byte(text)))
		if len(shown) != len(text) || strings.Count(shown, "\n") != strings.Count(text, "\n") {
			t.Fatalf("%q is shown as %q", text, shown)
		}
		for i := range len(text) {
			if shown[i] != text[i] && shown[i] != '*' {
				t.Fatalf("%q is shown as %q", text, shown)
			}
		}
	})
}

func TestBlockSource_positions(t *testing.T) {
	const text = "# tools\ntool \"a\" {\n  run = <<JS\n    return `}`;\n  JS\n}\n\nsecret \"k\" { value = \"hunter2\" }\ntool \"broken\" {\n"
	for at, want := range map[string]string{
		`"a"`:      "tool \"a\" {\n  run = <<JS\n    return `}`;\n  JS\n}",
		"return":   "tool \"a\" {\n  run = <<JS\n    return `}`;\n  JS\n}",
		`"k"`:      `secret "k" { value = "*******" }`,
		"# tools":  "",
		`"broken"`: "",
	} {
		if got := BlockSource("t.hcl", []byte(text), ToolsKind, strings.Index(text, at)); got != want {
			t.Errorf("the block at %s is\n%s\nwant\n%s", at, got, want)
		}
	}
	for _, text := range []string{"", "tool", strings.Repeat("x", maxFile+1)} {
		if got := BlockSource("t.hcl", []byte(text), ToolsKind, 0); got != "" {
			t.Errorf("the block of %.10q is %q", text, got)
		}
	}
	if got := BlockSource("t.hcl.json", []byte(`{"tool": {"a": {"run": "return 1;", "title": "x"}}}`), ToolsKind, 11); !strings.Contains(got, "return 1;") {
		t.Errorf("the block in JSON is %q", got)
	}
}
