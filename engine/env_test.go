package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// hostileEnvironment is an environment in which every name is set.
func hostileEnvironment(name string) (string, bool) { return "value of " + name, true }

// reading returns a tool with a granted variable and a script.
func reading(name, body string) string {
	return fmt.Sprintf("tool \"t\" {\n  allow {\n    env { names = [%q] }\n  }\n  run = <<JS\n    %s\n  JS\n}\n", name, body)
}

func TestVariable_names(t *testing.T) {
	for name, want := range map[string]string{
		"":              `"" is not a valid variable name`,
		"*":             "a grant must name each environment variable",
		"APP_*":         "a grant must name each environment variable",
		"LANG=x":        `"LANG=x" is not a valid variable name`,
		"=C:":           `"=C:" is not a valid variable name`,
		"LANG\x00":      "",
		"LANG ":         `"LANG " is not a valid variable name`,
		"LA NG":         `"LA NG" is not a valid variable name`,
		"LANG\n":        "is not a valid variable name",
		"1A":            `"1A" is not a valid variable name`,
		"A-B":           `"A-B" is not a valid variable name`,
		"A.B":           `"A.B" is not a valid variable name`,
		"${HOME}":       "",
		"BASH_FUNC_x%%": "is not a valid variable name",
		"ÄÖ":            "is not a valid variable name",
		"ＬＡＮＧ":          "is not a valid variable name",
		"MCPD_VAR_pin":  "MCPD_VAR_pin sets the value of a variable block",
		"mcpd_var_pin":  "mcpd_var_pin sets the value of a variable block",
		"MCPD_VAR_":     "MCPD_VAR_ sets the value of a variable block",
		"TOKEN":         "which contains the secret",
		"token":         "which contains the secret",
		"Token":         "which contains the secret",
	} {
		s := unloaded(t, engine.Options{
			Files: engine.Files{Tools: files("a.hcl", reading(name, "return 1;")), Config: files("mcpd.hcl", "secret \"key\" { env = \"TOKEN\" }\n"), LookupEnv: hostileEnvironment},
		})
		report, err := s.Load(t.Context())
		said := fmt.Sprint(report.Problems)
		if err == nil || !strings.Contains(said, "a.hcl:3:") || !strings.Contains(said, want) {
			t.Errorf("%q: %v, want %q", name, said, want)
		}
	}
}

func TestVariable_javaScriptNames(t *testing.T) {
	const body = `const other = "PA" + "TH";
    return [env.%[1]s, Object.keys(env).join(), Object.isFrozen(env), typeof {}.toString, [].concat(1).length, env[other] ?? null];`
	for _, name := range []string{"__proto__", "constructor", "prototype", "toString", "valueOf", "hasOwnProperty", "then", "toJSON", "LANG", "lang"} {
		s := server(t, engine.Options{Files: engine.Files{Tools: files("a.hcl", reading(name, fmt.Sprintf(body, name))), LookupEnv: hostileEnvironment}})
		got := s.Execute(t.Context(), call.Request{Kind: call.Tools, Name: "t", Arguments: []byte(`{}`)})
		want := fmt.Sprintf(`["value of %[1]s","%[1]s",true,"function",1,null]`, name)
		if got.Err != nil || string(got.Value) != want {
			t.Errorf("%s: got %s %v, want %s", name, got.Value, got.Err, want)
		}
	}
}
