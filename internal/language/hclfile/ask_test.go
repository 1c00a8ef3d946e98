package hclfile

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

func TestAToolSaysWhatItAsksAndWaitsFor(t *testing.T) {
	tools := decodeTools(t, "x.hcl", `
tool "asks" {
  ask_timeout = "2m"
  task        = "required"
  task_ttl    = "3h"
  ask_first   = true
  allow {
    ask {
      elicit     = true
      sample     = true
      roots      = false
      max_rounds = 3
      max_tokens = 500
    }
  }
  run = "return 1"
}
tool "may_be_a_task" {
  task = "optional"
  run  = "return 1"
}
tool "plain" { run = "return 1" }
`, Scope{}).Tools
	asks, optional, plain := tools[0], tools[1], tools[2]
	want := grant.Set{Ask: &grant.Ask{Elicit: true, Sample: true, MaxRounds: 3, MaxTokens: 500}}
	if diff := cmp.Diff(want, asks.Grant); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if asks.AskTimeout != 2*time.Minute || asks.Task != definition.TaskRequired || asks.TaskTTL != 3*time.Hour || !asks.AskFirst ||
		asks.GrantRanges["ask"].Start.Line != 8 || asks.GrantRanges["ask.sample"].Start.Line != 10 {
		t.Errorf("got %+v", asks)
	}
	if optional.Task != definition.TaskOptional || optional.TaskTTL != definition.DefaultTaskTTL || plain.Task != "" || plain.TaskTTL != 0 || plain.AskTimeout != definition.DefaultAskTimeout {
		t.Errorf("got %+v and %+v", optional, plain)
	}
	if want.Hash() == (grant.Set{}).Hash() || want.Hash() == (grant.Set{Ask: &grant.Ask{Elicit: true}}).Hash() {
		t.Error("grants that differ hash alike")
	}
	if names := want.Ask.Names(); !slices.Equal(names, []string{"elicit", "sample"}) {
		t.Errorf("granted are %v", names)
	}
}
