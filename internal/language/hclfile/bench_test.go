package hclfile

import (
	"fmt"
	"testing"
)

// smallTool is a typical tool file.
func smallTool(i int) Source {
	return Source{Path: fmt.Sprintf("tools.d/tool_%d.hcl", i), Bytes: fmt.Appendf(nil, `
tool "tool_%d" {
  description = "Returns the status of one customer. Use it before any refund."
  read_only   = true

  input "customer_id" {
    type        = string
    description = "Customer id, like C-1042"
    pattern     = "^C-[0-9]+$"
  }
  input "limit" {
    type    = integer
    default = 10
    min     = 1
    max     = 100
  }

  output "status" {
    type = string
    enum = ["active", "suspended"]
  }

  run = <<JS
    const known = { "C-1042": "active", "C-1043": "suspended" };
    const status = known[input.customer_id];
    if (!status) throw new ToolError(%cno customer ${input.customer_id}%[2]c);
    return { status };
  JS
}
`, i, '`')}
}

func BenchmarkParse(b *testing.B) {
	src := smallTool(1)
	b.ReportAllocs()
	for b.Loop() {
		if f, problems := Parse(src, ToolsKind); f == nil {
			b.Fatal(problems)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	f, problems := Parse(smallTool(1), ToolsKind)
	if f == nil {
		b.Fatal(problems)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := f.Decode(Scope{}); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

// BenchmarkColdLoad parses and decodes 1,000 tool files.
func BenchmarkColdLoad(b *testing.B) {
	sources := make([]Source, 1000)
	for i := range sources {
		sources[i] = smallTool(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, src := range sources {
			f, problems := Parse(src, ToolsKind)
			if f == nil {
				b.Fatal(problems)
			}
			if _, problems := f.Decode(Scope{}); len(problems) > 0 {
				b.Fatal(problems)
			}
		}
	}
}
