package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// heavyTools are realistic tools on large inputs.
const heavyTools = `
tool "transform" {
  input "rows" {
    type = list(object({ id = integer, team = string, amount = number, open = bool }))
  }
  output "teams" { type = map(number) }
  output "top" { type = list(integer) }
  run = <<JS
    const open = input.rows.filter(r => r.open).map(r => ({ ...r, net: Math.round(r.amount * 81) / 100 }));
    const teams = {};
    for (const r of open) teams[r.team] = (teams[r.team] ?? 0) + r.net;
    return { teams, top: open.sort((a, b) => b.net - a.net).slice(0, 10).map(r => r.id) };
  JS
}
tool "patterns" {
  input "text" { type = string }
  output "found" { type = integer }
  run = <<JS
    let found = 0;
    for (const line of input.text.split("\n")) {
      const m = /^(\d{4})-(\d\d)-(\d\d) (\w+): user=(\S+) (.*)$/.exec(line);
      if (m && m[4] === "ERROR" && /timeout|refused/i.test(m[6])) found++;
    }
    return { found };
  JS
}
tool "large" {
  input "rows" { type = integer }
  run = <<JS
    const rows = [];
    for (let i = 0; i < input.rows; i++) rows.push({ id: i, name: "customer " + i, tags: ["a", "b"], amount: i * 1.5 });
    return rows;
  JS
}
`

// heavyCalls returns the arguments of each tool.
func heavyCalls() map[string]string {
	var rows, lines []string
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"team":"team %d","amount":%d.25,"open":%t}`, i, i%7, i*37%1009, i%3 > 0))
		lines = append(lines, fmt.Sprintf(`2026-07-%02d %s: user=u%d the request to db%d ended: %s`, 1+i%28, []string{"INFO", "ERROR"}[i%2], i, i%5, []string{"ok", "connection refused", "Timeout"}[i%3]))
	}
	text, _ := json.Marshal(strings.Join(lines, "\n"))
	return map[string]string{
		"transform": `{"rows":[` + strings.Join(rows, ",") + `]}`,
		"patterns":  `{"text":` + string(text) + `}`,
		"large":     `{"rows":1500}`, // about 100 kB
	}
}

// executors returns the script executors by name.
func executors(b *testing.B) map[string]scripting.Executor {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	apart, err := worker.NewExecutor(worker.Options{}, program, "mcpd", workerVerb)
	if err != nil {
		b.Fatal(err)
	}
	return map[string]scripting.Executor{"inline": scripting.Inline(), "worker": apart}
}

// BenchmarkHeavy calls the heavy tools in process, in both executors.
func BenchmarkHeavy(b *testing.B) {
	for name, x := range executors(b) {
		s := load(b, engine.Options{Files: engine.Files{Tools: fstest.MapFS{"heavy.hcl": {Data: []byte(heavyTools), Mode: 0o644}}}, Scripts: engine.Scripts{Executor: x}})
		for tool, arguments := range heavyCalls() {
			b.Run(tool+"/"+name, func(b *testing.B) {
				request := addRequest
				request.Name, request.Arguments = tool, json.RawMessage(arguments)
				b.ReportAllocs()
				for b.Loop() {
					if r := s.Execute(b.Context(), request); r.Err != nil {
						b.Fatal(r.Err)
					}
				}
			})
		}
	}
}
