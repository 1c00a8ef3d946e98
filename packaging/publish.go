package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	registry "github.com/modelcontextprotocol/registry/pkg/api/v0"
	"github.com/modelcontextprotocol/registry/pkg/model"
)

// registryName is the name of mcpd in MCP's registry. The image has it as a label.
const registryName = "io.github.mcpd/mcpd"

//go:embed mcpd.rb.tmpl
var formula string

// release is what GoReleaser wrote: its version, and the SHA-256 of each file by name.
type release struct {
	Version string
	Sums    map[string]string
}

// publish writes the files that other repositories publish: server.json and mcpd.rb.
func publish(dist, dir string) error {
	r, err := readRelease(dist)
	if err != nil {
		return err
	}
	server, err := encode(r.server())
	if err != nil {
		return err
	}
	var brew bytes.Buffer
	parsed, err := template.New("mcpd.rb").Option("missingkey=error").Parse(formula)
	if err != nil {
		return err
	}
	if err := parsed.Execute(&brew, r); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "server.json"), server, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "mcpd.rb"), brew.Bytes(), 0o644)
}

func readRelease(dist string) (*release, error) {
	text, err := os.ReadFile(filepath.Join(dist, "metadata.json"))
	if err != nil {
		return nil, err
	}
	r := &release{Sums: map[string]string{}}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	sums, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(sum) {
			return nil, fmt.Errorf("checksums.txt: %q is not a checksum", line)
		}
		r.Sums[name] = sum
	}
	return r, nil
}

// URL returns where a file of the release can be downloaded.
func (r *release) URL(name string) string {
	return repository + "/releases/download/v" + r.Version + "/" + name
}

// Download returns the lines of the formula for the archive of a platform, such as
// linux_amd64.
func (r *release) Download(platform string) (string, error) {
	name := "mcpd_" + r.Version + "_" + platform + ".tar.gz"
	sum := r.Sums[name]
	if sum == "" {
		return "", fmt.Errorf("checksums.txt does not list %s", name)
	}
	return fmt.Sprintf("url %q\n      sha256 %q", r.URL(name), sum), nil
}

// server returns the entry of mcpd in MCP's registry: a bundle for each platform, and
// the image.
func (r *release) server() registry.ServerJSON {
	entry := registry.ServerJSON{
		Schema:      model.CurrentSchemaURL,
		Name:        registryName,
		Title:       "mcpd",
		Description: description,
		Version:     r.Version,
		WebsiteURL:  repository,
		Repository:  &model.Repository{URL: repository, Source: "github"},
	}
	var bundles []string
	for name := range r.Sums {
		if strings.HasSuffix(name, ".mcpb") {
			bundles = append(bundles, name)
		}
	}
	slices.Sort(bundles)
	stdio := model.Transport{Type: model.TransportTypeStdio}
	for _, name := range bundles {
		entry.Packages = append(entry.Packages, model.Package{
			RegistryType: model.RegistryTypeMCPB,
			Identifier:   r.URL(name),
			FileSHA256:   r.Sums[name],
			Transport:    stdio,
		})
	}
	entry.Packages = append(entry.Packages, model.Package{
		RegistryType: model.RegistryTypeOCI,
		Identifier:   "ghcr.io/mcpd/mcpd:" + r.Version,
		RunTimeHint:  model.RuntimeHintDocker,
		Transport:    stdio,
		RuntimeArguments: []model.Argument{
			named("--read-only", ""),
			{
				Type: model.ArgumentTypeNamed,
				Name: "--mount",
				InputWithVariables: model.InputWithVariables{
					Input: model.Input{Value: "type=bind,src={tools},dst=/etc/mcpd/tools.d,readonly"},
					Variables: map[string]model.Input{"tools": {
						Description: "The folder with your tool files (*.hcl)",
						Format:      model.FormatFilePath,
						IsRequired:  true,
					}},
				},
			},
		},
		PackageArguments: []model.Argument{
			{Type: model.ArgumentTypePositional, InputWithVariables: model.InputWithVariables{Input: model.Input{Value: "serve"}}},
			named("--stdio", ""),
		},
	})
	return entry
}

func named(flag, value string) model.Argument {
	return model.Argument{Type: model.ArgumentTypeNamed, Name: flag, InputWithVariables: model.InputWithVariables{Input: model.Input{Value: value}}}
}
