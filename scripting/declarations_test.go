package scripting

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// declarations declares the globals for editors.
const declarations = "../internal/codemode/scripttypes/globals.d.ts"

func allKinds() []Kind { return []Kind{Tool, Hook, Resource, Prompt, Complete} }

func TestDeclarations_classMembers(t *testing.T) {
	data, err := os.ReadFile(declarations)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, class := range []string{"URL", "URLSearchParams", "TextEncoder", "TextDecoder"} {
		r := newOpenExecution(t)
		o := r.Needed(class).Get("prototype").ToObject(r.Runtime)
		installed := slices.DeleteFunc(o.GetOwnPropertyNames(), func(name string) bool { return name == "constructor" })
		slices.Sort(installed)
		body := regexp.MustCompile(`(?s)declare class ` + class + ` \{(.*?)\n\}`).FindStringSubmatch(text)[1]
		var declared []string
		for _, found := range regexp.MustCompile(`(?m)^  (?:readonly )?(\w+)(?:\(|:)`).FindAllStringSubmatch(body, -1) {
			if found[1] != "constructor" {
				declared = append(declared, found[1])
			}
		}
		slices.Sort(declared)
		if diff := cmp.Diff(installed, declared); diff != "" {
			t.Errorf("%s (-installed +declared):\n%s", class, diff)
		}
	}
}
