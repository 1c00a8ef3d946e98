package catalog

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// run builds the file and runs the handler of an item.
func run(t *testing.T, file string, k Kind, address string, args map[string]any) (reply, failure string) {
	t.Helper()
	built := New(Options{Tools: fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(file)}}}).Build(Change{All: true}, nil)
	if len(built.Problems) > 0 {
		t.Fatal(built.Problems)
	}
	outcome, err := built.Base.Entry(k, address).Handler.Run(t.Context(), Invocation{Address: address, Args: args})
	switch {
	case err != nil:
		t.Fatal(err)
	case outcome.Failure != nil:
		return "", outcome.Failure.Message
	}
	return string(outcome.Result.JSON), ""
}

func TestPrompt_maxSize(t *testing.T) {
	prompt := "prompt \"p\" {\n  argument \"a\" {}\n  message \"user\" { text = \"" + strings.Repeat("{{a}}", 1000) + "\" }\n}\n"
	template := "resource_template \"t\" {\n  uri_template = \"x:{a}\"\n  text = \"" + strings.Repeat("{{a}}", 1000) + "\"\n}\n"
	for _, c := range []struct {
		file, address string
		kind          Kind
	}{{prompt, "p", Prompts}, {template, "x:{a}", Templates}} {
		fits, over := strings.Repeat("a", 4194), strings.Repeat("a", 4195)
		if reply, failure := run(t, c.file, c.kind, c.address, map[string]any{"a": fits}); len(reply) < 4194000 {
			t.Errorf("%s is %d bytes, %q", c.address, len(reply), failure)
		}
		_, failure := run(t, c.file, c.kind, c.address, map[string]any{"a": over})
		if want := "with these values the text has 4195000 bytes, more than 4194304"; failure != want {
			t.Errorf("%s fails with %q, want %q", c.address, failure, want)
		}
	}
}

func TestPrompt_uriEncoding(t *testing.T) {
	const file = `prompt "p" {
  argument "a" {}
  message "user" {
    link {
      uri  = "x://{{a}}"
      name = "{{a}}"
    }
  }
}`
	reply, _ := run(t, file, Prompts, "p", map[string]any{"a": "a/b c%20{{a}}é 5%"})
	const want = `{"messages":[{"role":"user","content":{"type":"resource_link",` +
		`"uri":"x://a/b%20c%20%7B%7Ba%7D%7D%C3%A9%205%25","name":"a/b c%20{{a}}é 5%"}}]}`
	if reply != want {
		t.Errorf("got  %s\nwant %s", reply, want)
	}
}

func TestPrompt_invalidURI(t *testing.T) {
	const file = `prompt "p" {
  argument "a" {}
  message "user" { text = "Look at this" }
  message "user" {
    link {
      uri  = "{{a}}"
      name = "it"
    }
  }
}`
	for _, a := range []string{"", "somewhere", ":x", "x:"} {
		if reply, failure := run(t, file, Prompts, "p", map[string]any{"a": a}); failure != "message 2: with these arguments, its uri is not absolute" {
			t.Errorf("%q gives %s, %q", a, reply, failure)
		}
	}
}

func TestPolicies_argumentFilledLater(t *testing.T) {
	const file = `prompt "p" {
  argument "first" { required = true }
  argument "team" { values = ["red", "blue"] }
  argument "id" { required = true }
  message "user" { text = "{{id}}" }
}
policy "before" {
  deny   = "args.first == 'x'"
  reason = "no"
}
policy "after" {
  deny   = "args.id == 'x' || args.id == 'y'"
  reason = <<CEL
    "not " + args.id
  CEL
}
policy "allows" {
  allow  = "args.id != 'x'"
  reason = "no"
}
policy "asks" {
  when   = "has(args.id)"
  allow  = "args.id != 'x'"
  reason = "no"
}
`
	built := New(Options{Tools: fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(file)}}}).Build(Change{All: true}, nil)
	const early = "warning: args.id is absent while an earlier argument is completed, and then this denies the completion; test for it first, as in "
	want := []string{"t.hcl:12:13: " + early + "has(args.id) && ...", "t.hcl:18:13: " + early + "!has(args.id) || ..."}
	var got []string
	for _, p := range built.Problems.Sort() {
		got = append(got, p.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
