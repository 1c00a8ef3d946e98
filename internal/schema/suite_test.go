package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

// suiteVariable names the folder of a checkout of
// github.com/json-schema-org/JSON-Schema-Test-Suite.
const suiteVariable = "JSON_SCHEMA_TEST_SUITE"

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// differences are official cases that are answered differently on purpose, by
// file and by the beginning of the group.
var differences = map[string]string{
	"format.json":           "",                      // formats are asserted, not annotations
	"content.json":          "",                      // contents are annotations, as from draft 2019-09 on
	"ecmascript-regex.json": "",                      // patterns are RE2
	"hostname.json":         "validation of A-label", // which characters IDNA allows is not checked
	"idn-hostname.json":     "",
}

func TestOfficialSuite(t *testing.T) {
	root := os.Getenv(suiteVariable)
	if root == "" {
		t.Skipf("the official cases are not run: set %s to a checkout of github.com/json-schema-org/JSON-Schema-Test-Suite", suiteVariable)
	}
	for _, draft := range []string{"draft2020-12", "draft2019-09", "draft7"} {
		for _, pattern := range []string{"*.json", "optional/format/*.json", "optional/*.json"} {
			files, err := filepath.Glob(filepath.Join(root, "tests", draft, pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("no cases of %s/%s: %v", draft, pattern, err)
			}
			for _, file := range files {
				runSuiteFile(t, draft, file)
			}
		}
	}
}

func runSuiteFile(t *testing.T, draft, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []suiteGroup
	if err := json.Unmarshal(text, &groups); err != nil {
		t.Fatal(err)
	}
	name := draft + "/" + filepath.Base(file)
	for _, group := range groups {
		if begins, ok := differences[filepath.Base(file)]; ok && strings.HasPrefix(group.Description, begins) {
			continue
		}
		s, problems := Compile(withDraft(group.Schema, draft), diag.Range{}, nil)
		if s == nil {
			t.Logf("%s: %s: refused: %v", name, group.Description, problems)
			continue
		}
		for _, test := range group.Tests {
			if valid := len(s.Value(test.Data)) == 0; valid != test.Valid {
				t.Errorf("%s: %s: %s: valid %t, want %t", name, group.Description, test.Description, valid, test.Valid)
			}
		}
	}
}

// withDraft names the draft in a schema that does not.
func withDraft(schema json.RawMessage, draft string) json.RawMessage {
	if draft != "draft7" || schema[0] != '{' || strings.Contains(string(schema), `"$schema"`) {
		return schema
	}
	rest := strings.TrimSpace(string(schema[1:]))
	comma := ","
	if rest == "}" {
		comma = ""
	}
	return json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#"` + comma + rest)
}
