package checks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/container"
	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

// odd are strings that some reader of these files could misinterpret.
var odd = []string{"", "$", "$$", "${A}", "${A:-b}", "$(A)", "yes", "null", "~", "010", "1e3", "a: b", "a #b", "- a", "*a", "&a", "!a", "%a", "@a", "`a", "{", "[", "'", "\"", "\\", "|", ">-", "\n", "a\nb\n", " a ", "\t", "a\n---\nb", "# a", "é\u2028\u0085\ufeff", "2026-07-28", "0x1F", "<<", "=", "...", "{{", "{{ .Values.x }}", "{{{`", "}}", "{{- \"a\" -}}"}

// random returns a random valid deployment.
func random(r *rand.Rand) compose.Deployment {
	some := func(list []string) string { return list[r.IntN(len(list))] }
	text := func() string { return some(odd) + some(odd) }
	d := compose.Deployment{
		Name: "d" + fmt.Sprint(r.IntN(100)), Image: "mcpd", Version: "v1.0.0", Port: 1024 + r.IntN(60000), TLS: r.IntN(2) == 0, Auth: r.IntN(2) == 0, Insecure: true,
		Config: some([]string{"mcpd.hcl", "./a b/$x.hcl", "../~", "~/mcpd.hcl"}), Tools: some([]string{".", "tools.d", "no: 1"}),
		ConfigText: []byte(text()), ToolFiles: map[string][]byte{}, State: r.IntN(2) == 0,
		Secrets:  []compose.Secret{{Name: "of_env", Environment: "OF_ENV"}, {Name: "of.file", File: some([]string{"/a", "b$", "no"})}},
		LockText: [][]byte{nil, []byte(text())}[r.IntN(2)],
		Limits:   compose.Limits{Memory: container.MinMemory + r.Int64N(1<<30), CPU: 1 + r.IntN(4000)},
		Database: r.IntN(2) == 0, Helm: true,
	}
	if d.Database {
		d.Replicas, d.Peers = r.IntN(5), []int{0, 1023 + 64000}[r.IntN(2)]
	}
	for i := range r.IntN(4) {
		d.ToolFiles[fmt.Sprint(i)+some([]string{"a.hcl", "a/b.hcl", "a_b.hcl", "é/$.md", " "})] = []byte(text() + some([]string{"", "\xff"}))
	}
	for i := range r.IntN(4) {
		u := compose.Upstream{
			Name: some([]string{"a", "B_c", "d-e"}) + fmt.Sprint(i), Image: some([]string{"a", "r.io:5/a/b-c:x", "localhost/a__b"}), Port: 1024 + r.IntN(60000),
			Internet: r.IntN(2) == 0, User: r.IntN(2000), Command: []string{text(), text()}[:r.IntN(3)],
			Volumes:  []compose.Volume{{Name: "one", Target: "/one", ReadOnly: r.IntN(2) == 0}, {Name: "two", Host: "/x$", Target: "/home/two"}}[:r.IntN(3)],
			Writable: []string{"/w"}[:r.IntN(2)], Reads: []string{"of.file"}[:r.IntN(2)],
		}
		for j := range r.IntN(4) {
			u.Env = append(u.Env, compose.Variable{Name: some([]string{"A", "yes", "N", "null"}) + fmt.Sprint(j), Value: text()})
		}
		if r.IntN(2) == 0 {
			u.Env = append(u.Env, compose.Variable{Name: "SECRET", Secret: "of_env"})
		}
		if r.IntN(2) == 0 {
			u.Health = []string{"/health", text()}
		}
		d.Upstreams = append(d.Upstreams, u)
	}
	return d
}

// Compose and Kubernetes must accept every deployment and keep all its strings
// unchanged.
func TestFiles_roundTrip(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: single goroutine")
	}
	for seed := range uint64(150) {
		d := random(rand.New(rand.NewPCG(seed, 0)))
		faithful(t, d)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, d)
		}
	}
}

// faithful checks that both readers reproduce the deployment.
func faithful(t testing.TB, d compose.Deployment) {
	t.Helper()
	content := samples.Written(t, d)
	p, err := loaded(content[composeFile], map[string]string{"OF_ENV": "value", "A": "wrong"})
	if err != nil {
		t.Fatalf("%v\n%s", err, content[composeFile])
	}
	confinedProject(t, p)
	m := decoded(t, content)
	confinedPods(t, m)
	sameChart(t, content, m)
	if diff := cmp.Diff(d.ToolFiles, m.mountedFiles(t, m.pods()["mcpd"], toolsFolder)); diff != "" {
		t.Errorf("tools (-want +got)\n%s", diff)
	}
	config := map[string][]byte{"mcpd.hcl": d.ConfigText}
	if d.LockText != nil {
		config["mcpd.lock"] = d.LockText
	}
	if diff := cmp.Diff(config, m.mountedFiles(t, m.pods()["mcpd"], configFolder)); diff != "" {
		t.Errorf("configuration (-want +got)\n%s", diff)
	}
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		service, c := p.Services[container.Host(u.Name)], m.pods()[container.Host(u.Name)].Containers[0]
		want, byCompose, byKubernetes := map[string]string{}, map[string]string{}, map[string]string{}
		for name, value := range service.Environment {
			byCompose[name] = *value
		}
		for _, v := range c.Env {
			byKubernetes[v.Name] = expanded(v.Value)
			if v.ValueFrom != nil {
				byKubernetes[v.Name] = "value"
			}
			if references(v.Value) {
				t.Errorf("%s was expanded", v.Name)
			}
		}
		for _, v := range u.Env {
			want[v.Name] = v.Value
			if v.Secret != "" {
				want[v.Name] = "value"
			}
		}
		if diff := cmp.Diff(want, byCompose); diff != "" {
			t.Errorf("Compose environment (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(want, byKubernetes); diff != "" {
			t.Errorf("Kubernetes environment (-want +got)\n%s", diff)
		}
		var args []string
		for _, a := range c.Args {
			args = append(args, expanded(a))
		}
		if !slices.Equal(u.Command, service.Command) || !slices.Equal(u.Command, args) {
			t.Errorf("command %q, got %q and %q", u.Command, service.Command, args)
		}
	}
}

// FuzzFiles checks that every accepted deployment survives a round trip, and that Files
// does not panic.
func FuzzFiles(f *testing.F) {
	f.Add("search", "mcp/search:1", "/mcp", "KEY", "50% $HOME ${A} $(A)", "/workspace", "mcpd.hcl", "crm/a.hcl")
	f.Add("a\nb", "a: b", "/$", "no", "\x00", "/tmp", "~", "..")
	f.Add("Yes", "y", "/a%2Fb?c=d", "N", "a\n\n---\n\"\\", "/home/x@1", "../$x", "a\u2028/\x01.md")
	for _, text := range odd {
		f.Add("null", "null", "/", "null", text, "/null", "null", text)
	}
	f.Fuzz(func(t *testing.T, name, image, path, variable, text, target, file, tool string) {
		d := compose.Deployment{
			Name: "fuzz", Image: "mcpd", Version: "v1.0.0", Insecure: true, Helm: true, Config: file, Tools: file, ConfigText: []byte(text),
			ToolFiles: map[string][]byte{tool: []byte(text)}, Secrets: []compose.Secret{{Name: "of_file", File: file}},
			Upstreams: []compose.Upstream{{
				Name: name, Image: image, Port: 8001, Path: path, Command: []string{text, path}, Health: []string{"x", text},
				Env: []compose.Variable{{Name: variable, Value: text}}, Volumes: []compose.Volume{{Name: "v", Host: file, Target: target}}, Reads: []string{"of_file"},
			}},
		}
		if _, err := compose.Files(d); err != nil {
			if !strings.HasPrefix(err.Error(), "write deployment: ") {
				t.Errorf("got %v", err)
			}
			return
		}
		faithful(t, d)
	})
}
