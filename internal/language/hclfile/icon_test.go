package hclfile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func TestIconsKeepTheirOrderInBothSyntaxes(t *testing.T) {
	want := []definition.Icon{
		{Src: "https://cdn.example/a.png", MIMEType: "image/png", Sizes: []string{"48x48", "any"}, Theme: definition.DarkTheme},
		{Src: "data:image/gif;base64,R0lGODlhAQABAAAAACw="},
	}
	for path, source := range map[string]string{
		"x.hcl": `
tool "t" {
  icon {
    src       = "https://cdn.example/a.png"
    mime_type = "image/png"
    sizes     = ["48x48", "any"]
    theme     = "dark"
  }
  icon { src = "data:image/gif;base64,R0lGODlhAQABAAAAACw=" }
  run = "return 1"
}`,
		"x.hcl.json": `{"tool": {"t": {"run": "return 1", "icon": [
  {"src": "https://cdn.example/a.png", "mime_type": "image/png", "sizes": ["48x48", "any"], "theme": "dark"},
  {"src": "data:image/gif;base64,R0lGODlhAQABAAAAACw="}]}}}`,
	} {
		got := decodeTools(t, path, source, Scope{}).Tools[0].Icons
		if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(diag.Range{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
	}
}
