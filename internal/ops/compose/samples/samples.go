// Package samples provides deployments for the tests of package compose and of module
// checks, which loads them with Compose and Kubernetes.
package samples

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/ops/compose"
)

// Coding is CODING_ENV_CONFIG of RFC 003 with the open points decided: mcpd replaces
// the environment, the search server has Internet access, and the files server gets the
// workspace of the RFC's docker-compose.yml.
func Coding() compose.Deployment {
	return compose.Deployment{
		Name: "coding-env", Image: "coding-env:latest", Version: "v1.0.0", Port: 8000, Insecure: true,
		Config: "mcpd.hcl", Tools: "tools.d",
		ConfigText: []byte("server { name = \"coding-env\" }\n"),
		Secrets:    []compose.Secret{{Name: "search_api_key", Environment: "SEARCH_API_KEY"}},
		Upstreams: []compose.Upstream{
			{Name: "search", Image: "mcp-search-server:latest", Port: 8001, Internet: true, Env: []compose.Variable{{Name: "SEARCH_API_KEY", Secret: "search_api_key"}}},
			{Name: "files", Image: "mcp-files-server:latest", Port: 8002, Volumes: []compose.Volume{{Name: "workspace", Target: "/workspace", ReadOnly: true}}},
		},
	}
}

// Rich is a deployment that uses every feature.
func Rich() compose.Deployment {
	return compose.Deployment{
		Name: "desk", Image: "registry.example.com:5000/desk/mcpd:1.2.3", Version: "v1.2.3", TLS: true, Auth: true,
		Config: "conf/mcpd.hcl", Tools: "../shared/$tools.d",
		ConfigText: []byte("# ${HOME} costs $5\nlisten {\n  tls {\n    cert_file = \"/run/secrets/tls_cert\"\n    key_file  = \"/run/secrets/tls_key\"\n  }\n}\n"),
		ToolFiles: map[string][]byte{
			"crm/orders.hcl": []byte("tool \"orders\" {\n  run = \"return `${input.id}`;\"\n}\n"),
			"crm_orders.hcl": []byte("tool \"more\" {\n\trun = \"return 1;\"\n}\n"),
			"logo.png":       {0x89, 'P', 'N', 'G', 0xff},
			"notes/a b.md":   []byte("yes"),
		},
		LockText: []byte("mcpd.lock 1\n\nupstream \"Git_Hub\"\n"),
		State:    true, Limits: compose.Limits{Memory: 1<<30 + 1, CPU: 1500},
		Env: []compose.Variable{
			{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector:4318"},
			{Name: "ODD", Value: "50% \"of\" $HOME ${HOME} $(HOME) \\\n\tend"},
			{Name: "CRM_TOKEN", Secret: "crm_token"},
		},
		Secrets: []compose.Secret{
			{Name: "crm_token", Environment: "CRM_TOKEN"},
			{Name: "tls_cert", File: "secrets/cert.pem"},
			{Name: "tls_key", File: "/etc/desk/key$.pem"},
			{Name: "github", File: "secrets/github"},
			{Name: "unused", Environment: "UNUSED"},
		},
		Reads: []string{"tls_cert", "tls_key", "github"},
		Upstreams: []compose.Upstream{
			{
				Name: "Git_Hub", Image: "ghcr.io/github/github-mcp-server:v1", Port: 8082, Path: "/mcp/x?toolsets=all", Internet: true,
				Command: []string{"http", "--port=8082", "--greeting", "$$ $HOME $(HOME)"},
				Env:     []compose.Variable{{Name: "TOKEN_FILE", Value: "/run/secrets/github"}, {Name: "EMPTY"}, {Name: "YES", Value: "yes"}, {Name: "N", Value: "010"}},
				Reads:   []string{"github"}, User: 1000, Writable: []string{"/home/node/.cache"},
				Health: []string{"/bin/sh", "-c", "exec wget -qO- localhost:$PORT"},
				Volumes: []compose.Volume{
					{Name: "repositories", Target: "/data", Size: 10 << 30},
					{Name: "shared", Host: "./shared", Target: "/shared", ReadOnly: true},
				},
				Limits: compose.Limits{Memory: 32 << 20, CPU: 20},
			},
			{Name: "memory", Image: "memory@sha256:" + strings.Repeat("0a", 32), Port: 8083, Volumes: []compose.Volume{{Name: "shared", Host: "./shared", Target: "/data"}, {Name: "repositories", Target: "/data/r", ReadOnly: true, Size: 10 << 30}}},
		},
	}
}

// Fleet is a deployment of replicas that share a database, with a chart.
func Fleet() compose.Deployment {
	d := Rich()
	d.Name, d.Database, d.State, d.Replicas, d.Grace, d.Helm = "fleet", true, false, 3, 90*time.Second, true
	d.ToolFiles["templates.md"] = []byte("{{ .Values.secret }} and {{- \"}}\" \\ `{{{`\n\t{{/* end */}}\n")
	d.Upstreams[0].Health = append(d.Upstreams[0].Health, "{{ now }}")
	d.Upstreams[1].Env = []compose.Variable{{Name: "CRM", Secret: "crm_token"}, {Name: "FORMAT", Value: "{{.ID}}"}}
	d.Secrets = append(d.Secrets, compose.Secret{Name: "database", File: "secrets/database"}, compose.Secret{Name: "state_key", File: "secrets/state_key"})
	d.Reads = append(d.Reads, "database", "state_key")
	return d
}

// Written returns the content of each file of a valid deployment.
func Written(t testing.TB, d compose.Deployment) map[string]string {
	t.Helper()
	files, err := compose.Files(d)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, f := range files {
		content[f.Name] = string(f.Content)
	}
	return content
}
