// Package observability shows metrics, alerts and a dashboard for operators. See
// README.md.
package observability

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/base/yaml"
)

func TestAlerts_metricsExist(t *testing.T) {
	all, rules := seen(t), 0
	for _, rule := range list(t, documentOf(t, "alerts.yml"), "groups", "rules") {
		rules++
		shown := []string{}
		for _, text := range rule["annotations"].(map[string]any) {
			shown = append(shown, text.(string))
		}
		all.examine(t, rule["alert"].(string), rule["expr"].(string), shown...)
	}
	if rules < 10 {
		t.Errorf("got %d rules", rules)
	}
}

func TestDashboard_metricsExist(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	all, expressions := seen(t), 0
	for _, o := range objects(dashboard) {
		if expression, ok := o["expr"].(string); ok {
			expressions++
			legend, _ := o["legendFormat"].(string)
			all.examine(t, "dashboard.json", expression, legend)
		}
		if values, ok := o["query"].(string); ok && o["type"] == "query" {
			all.examineValues(t, values)
		}
	}
	if expressions != strings.Count(string(text), `"expr"`) || expressions < 30 {
		t.Errorf("checked %d expressions", expressions)
	}
}

// examineValues checks the query of a Grafana variable.
func (all series) examineValues(t *testing.T, text string) {
	t.Helper()
	found := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(text)
	if found == nil {
		t.Errorf("unsupported variable %s", text)
		return
	}
	all.examine(t, text, found[1], "{{"+found[2]+"}}")
}

// The dashboard must show every metric of ours.
func TestDashboard_complete(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(seen(t))) {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if strings.HasPrefix(name, "mcpd_") && !strings.Contains(string(text), base) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// TestMetricsPage_complete compares metrics and labels in both directions, since users
// build on their names.
func TestMetricsPage_complete(t *testing.T) {
	all, text := seen(t), fetched(t)
	kinds := regexp.MustCompile(`(?m)^# TYPE (mcpd_\w+) (\w+)$`).FindAllStringSubmatch(text, -1)
	helps := regexp.MustCompile(`(?m)^# HELP (mcpd_\w+) (.*)$`).FindAllStringSubmatch(text, -1)
	var want []string
	for i, kind := range kinds {
		name, labels := kind[1], map[string]string{}
		for _, s := range slices.Concat(all[name], all[name+"_count"]) {
			maps.Copy(labels, s)
		}
		row := []string{"", "`" + name + "`", kind[2], strings.Join(slices.Sorted(maps.Keys(labels)), ", "), helps[i][2], ""}
		want = append(want, strings.TrimSpace(strings.ReplaceAll(strings.Join(row, " | "), "|  |", "| |")))
	}
	document, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile("(?m)^\\| `mcpd_\\w+` .*$").FindAllString(string(document), -1)
	// Only a server with a state database has metrics of its fleet. A test of cmd/mcpd reads them.
	got = slices.DeleteFunc(got, func(row string) bool { return strings.HasPrefix(row, "| `mcpd_replica_") })
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("metrics of the server (-), in docs/reference/metrics.md (+)\n%s", diff)
	}
}

func TestPrometheus_loadsAlerts(t *testing.T) {
	document := documentOf(t, "prometheus.yml")
	if files := fmt.Sprint(document["rule_files"]); files != "[alerts.yml]" {
		t.Errorf("rules are in %s", files)
	}
	for _, job := range list(t, document, "scrape_configs") {
		if job["job_name"] != "mcpd" || job["metrics_path"] != "/metrics" {
			t.Errorf("%v", job)
		}
		if diff := cmp.Diff(map[string]any{"type": "Bearer", "credentials_file": "prometheus.key"}, job["authorization"]); diff != "" {
			t.Errorf("credential (-want +got)\n%s", diff)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "--scopes mcpd:metrics > prometheus.key\n") {
		t.Error("the README does not explain how to create the key")
	}
}

func TestPromQL_unknownMetric(t *testing.T) {
	all := seen(t)
	for _, expression := range []string{
		"mcpd_made_up", "sum by (made_up) (mcpd_calls_running)", `mcpd_calls_total{made_up="x"}`, `mcpd_calls_total{outcome="made up"}`, `mcpd_calls_total{outcome=~"ok|made_up"}`,
		"made_up(mcpd_calls_running)", "rate(mcpd_calls_total)", "sum(mcpd_calls_total[5m])", "mcpd_calls_total[5m]", "mcpd_calls_total mcpd_made_up", "(mcpd_calls_total", "1",
		"mcpd_calls_running + on (made_up) mcpd_calls_running", "topk(3, mcpd_made_up)", "mcpd_calls_running > bool mcpd_made_up", "`x`", `{__name__="mcpd_made_up"}`, "sum(mcpd_calls_running) by (made_up)",
	} {
		q, err := parseQuery(expression)
		if err == nil && len(all.check(q)) == 0 {
			t.Errorf("%s is accepted", expression)
		}
	}
}

func documentOf(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := yaml.Parse(string(text), func() error { return nil })
	if err != nil || len(documents) != 1 {
		t.Fatalf("%s: %d documents, %v", path, len(documents), err)
	}
	return plain(documents[0]).(map[string]any)
}

// plain returns a YAML value without the order of its names.
func plain(v any) any {
	switch v := v.(type) {
	case *yaml.Map:
		o := map[string]any{}
		for i, name := range v.Names {
			o[name] = plain(v.Values[i])
		}
		return o
	case []any:
		all := make([]any, len(v))
		for i, element := range v {
			all[i] = plain(element)
		}
		return all
	}
	return v
}

// list returns the objects of a list, or of a list in each object of it.
func list(t *testing.T, document map[string]any, path ...string) (all []map[string]any) {
	t.Helper()
	for _, element := range document[path[0]].([]any) {
		if len(path) == 1 {
			all = append(all, element.(map[string]any))
			continue
		}
		all = append(all, list(t, element.(map[string]any), path[1:]...)...)
	}
	return all
}

// objects returns all objects of a JSON document.
func objects(v any) (all []map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		all = append(all, v)
		for _, member := range v {
			all = append(all, objects(member)...)
		}
	case []any:
		for _, element := range v {
			all = append(all, objects(element)...)
		}
	}
	return all
}
