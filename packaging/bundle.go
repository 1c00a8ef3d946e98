package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	_ "embed"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// config is the configuration file of packages, container images and bundles.
//
//go:embed mcpd.hcl
var config []byte

// platforms maps the operating systems of desktop clients to their names in manifests.
var platforms = map[string]string{"darwin": "darwin", "linux": "linux", "windows": "win32"}

// manifest is the manifest.json of an MCP bundle.
type manifest struct {
	ManifestVersion string              `json:"manifest_version"`
	Name            string              `json:"name"`
	DisplayName     string              `json:"display_name"`
	Version         string              `json:"version"`
	Description     string              `json:"description"`
	LongDescription string              `json:"long_description"`
	Author          author              `json:"author"`
	Repository      manifestRepository  `json:"repository"`
	Documentation   string              `json:"documentation"`
	Support         string              `json:"support"`
	License         string              `json:"license"`
	Server          manifestServer      `json:"server"`
	ToolsGenerated  bool                `json:"tools_generated"`
	Compatibility   compatibility       `json:"compatibility"`
	UserConfig      map[string]question `json:"user_config"`
}

type author struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type manifestRepository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type manifestServer struct {
	Type       string    `json:"type"`
	EntryPoint string    `json:"entry_point"`
	Command    mcpConfig `json:"mcp_config"`
}

type mcpConfig struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

type compatibility struct {
	Platforms []string `json:"platforms"`
}

type question struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// manifest returns the manifest of the bundle of b. The client asks the user for the
// tool folder.
func (b *binary) manifest() manifest {
	program := "server/" + b.programName()
	return manifest{
		ManifestVersion: "0.3",
		Name:            "mcpd",
		DisplayName:     "mcpd",
		Version:         b.version(),
		Description:     description,
		LongDescription: "mcpd serves the tools that you write as HCL files with a few lines of JavaScript. It loads a file again when you save it.",
		Author:          author{"The mcpd authors", repository},
		Repository:      manifestRepository{"git", repository + ".git"},
		Documentation:   repository + "/blob/main/docs/README.md",
		Support:         repository + "/issues",
		License:         license,
		Server: manifestServer{"binary", program, mcpConfig{
			Command: "${__dirname}/" + program,
			Args:    []string{"serve", "--stdio", "--config", "${__dirname}/mcpd.hcl", "--tools", "${user_config.tools}"},
		}},
		ToolsGenerated: true,
		Compatibility:  compatibility{[]string{platforms[b.settings["GOOS"]]}},
		UserConfig: map[string]question{"tools": {
			Type:        "directory",
			Title:       "Tool folder",
			Description: "The folder with your tool files (*.hcl)",
			Required:    true,
		}},
	}
}

func (b *binary) programName() string {
	if b.settings["GOOS"] == "windows" {
		return "mcpd.exe"
	}
	return "mcpd"
}

// writeBundle writes the bundle of a binary into the directory, or nothing if no desktop
// client runs on its platform.
func writeBundle(from, dir string) error {
	b, err := readBinary(from)
	if err != nil {
		return err
	}
	system, machine := b.settings["GOOS"], b.settings["GOARCH"]
	if platforms[system] == "" || machine != "amd64" && machine != "arm64" {
		return nil
	}
	var out bytes.Buffer
	if err := b.bundle(&out); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "mcpd_"+system+"_"+machine+".mcpb"), out.Bytes(), 0o644)
}

func (b *binary) bundle(to io.Writer) error {
	described, err := encode(b.manifest())
	if err != nil {
		return err
	}
	out := zip.NewWriter(to)
	out.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, file := range []struct {
		name    string
		mode    fs.FileMode
		content []byte
	}{
		{"manifest.json", 0o644, described},
		{"mcpd.hcl", 0o644, config},
		{"server/" + b.programName(), 0o755, b.content},
	} {
		header := &zip.FileHeader{Name: file.name, Method: zip.Deflate, Modified: b.committed()}
		header.SetMode(file.mode)
		entry, err := out.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(file.content); err != nil {
			return err
		}
	}
	return out.Close()
}
