package hclfile

import (
	"fmt"
	"math/big"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/container"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// containerScope holds the unique names of the container blocks of a file, and the secrets they
// refer to.
type containerScope struct {
	secrets []definition.Secret
	hosts   map[string]*hclsyntax.Block // upstream blocks
	volumes map[string]definition.ContainerVolume
}

// upstreamContainer sets the address of an upstream to its container. The container is nil if
// its block was reported.
func (d *decoder) upstreamContainer(b *hclsyntax.Block, u *definition.Upstream) {
	d.requiresAttr(b, "private_networks", "url")
	d.upstreamHTTP(b, u)
	if c := u.Container; c != nil && c.Port > 0 && c.Path != "" {
		u.SetURL(container.URL(u.Name, c.Port, c.Path), true)
	}
}

func (d *decoder) container(b *hclsyntax.Block, upstream *hclsyntax.Block, n *containerScope) *definition.Container {
	d.checkBody(b)
	c := &definition.Container{Range: d.f.rng(b.DefRange())}
	d.containerHost(upstream, n)
	c.Image = d.matchingText(b.Body, "image", container.IsImage, "this is not the name of an image", `write it as in "ghcr.io/github/github-mcp-server:v1", with registry and tag`)
	if c.Image != "" && container.HasMutableTag(c.Image) {
		d.warn("bad-value", d.f.rng(b.Body.Attributes["image"].Expr.Range()), "this image may change at each start", "add the tag of a version, as in \"…:v1\", or a digest")
	}
	c.Port = d.intAttr(b.Body, "port", container.MinPort, container.MaxPort)
	c.Path = d.matchingText(b.Body, "path", container.IsURLPath, "this is not the path of a URL", `write it as in "/mcp"`)
	if b.Body.Attributes["path"] == nil {
		c.Path = container.DefaultPath
	}
	c.Command, c.Health = d.commandWords(b.Body, "command"), d.commandWords(b.Body, "health")
	d.checkProgram(b.Body, "health", c.Health)
	c.Env = d.environment(b.Body, d.upstreamVariable, func(x hclsyntax.Expression) ([]grant.Part, bool) {
		parts, ok := d.secretText(x) // it is written to files, so it must not be sensitive
		return parts, ok && d.checkContainerSecret(x, parts, n.secrets)
	})
	c.Reads = d.containerReads(b.Body, n.secrets)
	c.User = d.intAttr(b.Body, "user", 1, container.MaxUser)
	c.Internet, _ = d.boolean(b.Body, "internet", false)
	c.Memory = d.size(b.Body, "memory", container.MaxMemory)
	if c.Memory > 0 && c.Memory < container.MinMemory {
		d.fail("bad-value", d.f.rng(b.Body.Attributes["memory"].Expr.Range()), "this is not enough memory for a server", "write at least \"16MiB\"")
	}
	c.CPU = d.processors(b.Body)
	d.containerFolders(b, c, n)
	return c
}

// containerHost checks the host name of an upstream in a container.
func (d *decoder) containerHost(upstream *hclsyntax.Block, n *containerScope) {
	const other = "give the upstream another name"
	host, where := container.Host(upstream.Labels[0]), d.f.rng(upstream.LabelRanges[0])
	first, taken := n.hosts[host]
	switch {
	case !definition.IsName(upstream.Labels[0]): // already reported
	case !container.IsLabel(host):
		d.fail("bad-name", where, "this name is not a valid host name for a container", "use letters, digits, _ and -; start with a letter, and end with a letter or digit")
	case container.ReservedBy(host) != "":
		d.fail("bad-name", where, fmt.Sprintf("no container can be called %q: %s", host, container.ReservedBy(host)), other)
	case taken && first.Labels[0] != upstream.Labels[0]:
		d.fail("bad-name", where, fmt.Sprintf("two containers would have the host name %q", host), other, diag.Note{Range: d.f.rng(first.LabelRanges[0]), Message: "the first one is here"})
	default:
		n.hosts[host] = upstream
	}
}

// commandWords decodes the words of a command of a container.
func (d *decoder) commandWords(body *hclsyntax.Body, name string) []string {
	list, ok := d.stringList(body, name)
	if !ok || !d.checkLength(body, name, len(list)) {
		return nil
	}
	for _, e := range list {
		if len(e.text) > container.MaxText || !container.IsText(e.text) {
			d.fail("bad-value", d.f.rng(e.where), "this is not a valid argument", fmt.Sprintf("write at most %d KiB of text, without NUL", container.MaxText>>10))
		}
	}
	return textsOf(list)
}

// checkLength reports a list that is too long for a container, and returns false for it.
func (d *decoder) checkLength(body *hclsyntax.Body, name string, n int) bool {
	if n > container.MaxItems {
		d.fail("too-large", d.f.rng(body.Attributes[name].Expr.Range()), fmt.Sprintf("the list %q is too long", name), fmt.Sprintf("write at most %d items", container.MaxItems))
	}
	return n <= container.MaxItems
}

// checkProgram reports a list that does not start with a program.
func (d *decoder) checkProgram(body *hclsyntax.Body, name string, words []string) {
	attr := body.Attributes[name]
	switch {
	case attr == nil || words == nil:
	case len(words) == 0 || words[0] == "":
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q has no program", name), "write a program of the image and its arguments")
	case len(words) == 1 && strings.ContainsFunc(words[0], unicode.IsSpace):
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), "the command is one word with spaces, and no shell splits it", "write each word separately, as in [\"wget\", \"-q\", \"…\"]")
	}
}

// processors decodes a number of processors, in thousandths.
func (d *decoder) processors(body *hclsyntax.Body) int {
	v, ok := d.attrValue(body, "cpus", numberKind)
	if !ok {
		return 0
	}
	f, _ := new(big.Float).Mul(v.AsBigFloat(), big.NewFloat(1000)).Float64()
	n := int(max(min(f, container.MaxCPU+1), 0) + 0.5)
	if n < 1 || n > container.MaxCPU {
		d.fail("bad-value", d.f.rng(body.Attributes["cpus"].Expr.Range()), "\"cpus\" is out of range", fmt.Sprintf("write a number of processors from 0.001 to %d, such as 0.5", container.MaxCPU/1000))
		return 0
	}
	return n
}

// checkContainerSecret checks the value of a variable of a container: text, or one secret from
// the environment, because Compose and Kubernetes pass it on from there.
func (d *decoder) checkContainerSecret(x hclsyntax.Expression, parts []grant.Part, secrets []definition.Secret) bool {
	if !slices.ContainsFunc(parts, func(p grant.Part) bool { return p.Secret != "" || p.Base64 != nil }) {
		return true
	}
	if len(parts) > 1 || parts[0].Secret == "" {
		d.fail("misplaced-secret", d.f.rng(x.Range()), "a secret must be the whole value of a container variable", "write only secret.NAME")
		return false
	}
	i := slices.IndexFunc(secrets, func(s definition.Secret) bool { return s.Name == parts[0].Secret })
	if i < 0 || secrets[i].Env != "" || secrets[i].HasNoSource() {
		return true
	}
	detail := "use a secret with \"env\""
	if secrets[i].File != "" {
		detail += fmt.Sprintf(", or let the container read it: reads = [%q]", secrets[i].Name)
	}
	d.fail("misplaced-secret", d.f.rng(x.Range()), fmt.Sprintf("the secret %q does not come from the environment", secrets[i].Name), detail, diag.Note{Range: secrets[i].Range, Message: "the secret"})
	return false
}

// containerReads decodes the names of the secrets that a container reads as files.
func (d *decoder) containerReads(body *hclsyntax.Body, secrets []definition.Secret) (names []string) {
	list, _ := d.stringList(body, "reads")
	if !d.checkLength(body, "reads", len(list)) {
		return nil
	}
	taken := declaredNames{}
	for _, e := range list {
		if _, known := d.secret(e.text, e.where); !known || !d.declareName(taken, e.text, e.where, "%q occurs twice in \"reads\"", e.text) {
			continue
		}
		names = append(names, e.text)
		i := slices.IndexFunc(secrets, func(s definition.Secret) bool { return s.Name == e.text })
		if i >= 0 && secrets[i].File == "" && !secrets[i].HasNoSource() {
			d.fail("misplaced-secret", d.f.rng(e.where), fmt.Sprintf("the secret %q does not come from a file", e.text),
				fmt.Sprintf("write file = \"%s\" in its block, or pass it in \"env\"", path.Join(container.SecretFolder, e.text)), diag.Note{Range: secrets[i].Range, Message: "the secret"})
		}
	}
	return names
}

// containerFolders decodes the writable directories and volumes of a container.
func (d *decoder) containerFolders(b *hclsyntax.Block, c *definition.Container, n *containerScope) {
	const form = `write an absolute path without system directories, of letters, digits and ._@+-, such as "/data"`
	targets := declaredNames{}
	mounts := func(where hcl.Range, folder string) bool {
		if !container.IsFolder(folder) {
			d.fail("bad-value", d.f.rng(where), "this directory cannot be mounted", form)
			return false
		}
		if folder == "/tmp" {
			d.fail("bad-value", d.f.rng(where), "every container has a writable /tmp", "remove it, or use another directory")
			return false
		}
		return d.declareName(targets, folder, where, "%q is mounted twice", folder)
	}
	names := 0
	for _, inner := range blocks(b.Body, rules["container"]) {
		if names++; names == container.MaxItems+1 {
			d.fail("too-large", d.f.rng(inner.DefRange()), "the container has too many volumes", fmt.Sprintf("write at most %d", container.MaxItems))
			break
		}
		c.Volumes = append(c.Volumes, d.containerVolume(inner, mounts, n))
	}
	list, _ := d.stringList(b.Body, "writable")
	if !d.checkLength(b.Body, "writable", len(list)) {
		return
	}
	for _, e := range list {
		if mounts(e.where, e.text) {
			c.Writable = append(c.Writable, e.text)
		}
	}
}

func (d *decoder) containerVolume(b *hclsyntax.Block, mounts func(hcl.Range, string) bool, n *containerScope) definition.ContainerVolume {
	d.checkBody(b)
	v := definition.ContainerVolume{Name: b.Labels[0], NameRange: d.f.rng(b.LabelRanges[0])}
	switch {
	case !container.IsLabel(v.Name):
		d.fail("bad-name", v.NameRange, "the volume has a bad name", "use 1 to 63 lower-case letters, digits and -; start with a letter, and do not end with -")
	case v.Name == container.StateVolume:
		d.fail("bad-name", v.NameRange, "mcpd stores its state in the volume of this name", "give it another name")
	}
	if target, ok := d.text(b.Body, "target"); ok && mounts(b.Body.Attributes["target"].Expr.Range(), target) {
		v.Target = target
	}
	v.Host = d.matchingText(b.Body, "host", container.IsFile, "this is not a path in its shortest form", `write it as in "/srv/data" or "./data"`)
	v.ReadOnly, _ = d.boolean(b.Body, "read_only", false)
	v.Size = d.size(b.Body, "size", container.MaxMemory)
	first, shared := n.volumes[v.Name]
	switch {
	case !shared:
		n.volumes[v.Name] = v
	case first.Host != v.Host || first.Size != v.Size:
		d.fail("contradiction", v.NameRange, fmt.Sprintf("the volume %q has another \"host\" or \"size\" elsewhere", clip(v.Name)), "use the same values, or give it another name",
			diag.Note{Range: first.NameRange, Message: "the first one is here"})
	}
	return v
}
