package compose

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/language/container"
)

// The bounds of a deployment.
const (
	MaxUpstreams = 64
	maxToolFiles = 10_000
)

// problems are what a deployment cannot be written for.
type problems struct {
	about string // what is looked at
	errs  []error
}

func (p *problems) add(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(p.about+format, args...))
}

// of returns the problems of a part.
func (p *problems) of(kind, name string, look func(*problems)) {
	part := problems{about: fmt.Sprintf("%s%s %s: ", p.about, kind, clipped(name))}
	look(&part)
	p.errs = append(p.errs, part.errs...)
}

// few reports whether a list is as short as it has to be.
func (p *problems) few(what string, n, most int) bool {
	if n > most {
		p.add("%s: there are %d, and %d at most can be", what, n, most)
	}
	return n <= most
}

// check returns an error that names each part of a deployment which these files
// cannot express, or nil.
func check(d *Deployment) error {
	var p problems
	p.server(d)
	if p.few("secrets", len(d.Secrets), container.MaxItems) {
		p.secrets(d)
	}
	if p.few("upstreams", len(d.Upstreams), MaxUpstreams) {
		p.upstreams(d)
	}
	return errors.Join(p.errs...)
}

// server looks at what is mcpd's own.
func (p *problems) server(d *Deployment) {
	p.name("name", d.Name)
	p.image(d.Image)
	if strings.Contains(d.Image, "@") {
		p.add("image: one that is built has no digest before")
	}
	if !version().MatchString(d.Version) {
		p.add("version: %s is neither a tag like v1.2.3 nor a commit", clipped(d.Version))
	}
	p.port(d.Port)
	if d.Open() {
		p.add(OpenListen)
	}
	p.relative("config", d.Config)
	p.relative("tools", d.Tools)
	p.configMaps(d)
	p.limits(d.Limits)
	p.environment(d, d.Env)
	for _, v := range d.Env {
		// env_value_is_valid of systemd has it so.
		if strings.ContainsFunc(v.Value, func(c rune) bool { return c < ' ' && c != '\t' && c != '\n' || c == 0x7f }) {
			p.add("env %s: a unit of systemd holds no control characters but tabs and line ends", clipped(v.Name))
		}
	}
	p.reads(d, d.Reads)
}

func (p *problems) limits(l Limits) {
	if l.Memory < container.MinMemory || l.Memory > container.MaxMemory {
		p.add("memory: it is not between 16 MiB and 1 PiB")
	}
	if l.CPU < 1 || l.CPU > container.MaxCPU {
		p.add("cpu: it is not between a thousandth of a processor and 1000")
	}
}

func (p *problems) secrets(d *Deployment) {
	seen := map[string]bool{}
	for _, s := range d.Secrets {
		p.of("secret", s.Name, func(p *problems) {
			switch {
			case !container.IsSecret(s.Name):
				p.add("a name has letters, digits, _, - and dots, 63 of them at most, and begins with none of - and .")
			case seen[s.Name]:
				p.add("there is another one of the name")
			}
			switch {
			case (s.Environment == "") == (s.File == ""):
				p.add("it comes from an environment or from a file: one of them")
			case s.File != "":
				p.file("file", s.File)
			case !variableName().MatchString(s.Environment):
				p.add("environment: %s is no name of a variable", clipped(s.Environment))
			}
		})
		seen[s.Name] = true
	}
}

// environment looks at variables, which have one value each.
func (p *problems) environment(d *Deployment, variables []Variable) {
	if !p.few("env", len(variables), container.MaxItems) {
		return
	}
	seen := map[string]bool{}
	for _, v := range variables {
		p.of("env", v.Name, func(p *problems) {
			switch {
			case !variableName().MatchString(v.Name):
				p.add("a name has letters, digits and _, 128 of them at most, and begins with no digit")
			case seen[v.Name]:
				p.add("it is set twice")
			case v.Secret == "":
				p.text(v.Value)
			case v.Value != "":
				p.add("it has a value or a secret, and not both")
			default:
				p.variableSecret(d, v.Secret)
			}
		})
		seen[v.Name] = true
	}
}

// variableSecret looks whether a variable can hold a secret.
func (p *problems) variableSecret(d *Deployment, name string) {
	switch s := d.secret(name); {
	case s.Name == "":
		p.add("there is no secret %s", clipped(name))
	case s.Environment == "":
		p.add("the secret %s comes from a file, which Compose puts into no variable; read it as a file, or take it from the environment", clipped(name))
	}
}

func (p *problems) reads(d *Deployment, names []string) {
	if !p.few("reads", len(names), container.MaxItems) {
		return
	}
	seen := map[string]bool{}
	for _, name := range names {
		switch s := d.secret(name); {
		case s.Name == "":
			p.add("reads: there is no secret %s", clipped(name))
		case s.File == "":
			p.add("reads: the secret %s comes from the environment, of which Compose makes no file in a container that cannot be written; take it from a file", clipped(name))
		case seen[name]:
			p.add("reads: the secret %s stands there twice", clipped(name))
		}
		seen[name] = true
	}
}

// configMaps looks whether files can stand in ConfigMaps.
func (p *problems) configMaps(d *Deployment) {
	if len(d.ConfigText) > maxConfigMap {
		p.add("config: it is larger than 512 KiB, which a ConfigMap may hold")
	}
	if len(d.ConfigText)+len(d.LockText) > largestConfigMap {
		p.add("lock: mcpd.hcl and mcpd.lock together are larger than 1 MiB, which a ConfigMap may hold; exclude tools of upstreams that nobody needs, and have mcpd lock accept take them out")
	}
	if !p.few("tools", len(d.ToolFiles), maxToolFiles) {
		return
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(d.ToolFiles)) {
		total += len(d.ToolFiles[name])
		switch {
		case !toolPath(name):
			p.add("tools: %s cannot be the path of a file in a ConfigMap", clipped(name))
		case len(d.ToolFiles[name]) > maxConfigMap:
			p.add("tools: %s is larger than 512 KiB, which a ConfigMap may hold", clipped(name))
		default:
			p.folders(name, d.ToolFiles)
		}
	}
	if total > MaxTools {
		p.add("tools: all files together are larger than 8 MiB")
	}
}

// folders looks whether the folders of a file are files themselves.
func (p *problems) folders(name string, files map[string][]byte) {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if _, file := files[folder]; file {
			p.add("tools: %s is a file, and %s stands in it", clipped(folder), clipped(name))
		}
	}
}
