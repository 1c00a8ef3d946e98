package hclfile

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/container"
	"github.com/mcpd/mcpd/internal/grant"
)

// Container is a container block: how the server of an upstream is run beside this
// one, which reaches it by its host name. Zero members are not said.
type Container struct {
	Image string
	Port  int
	// Path is that of its MCP endpoint, with [container.DefaultPath] filled in.
	Path string
	// Command takes the place of the command of the image, behind its entry point.
	Command []string
	// Env are its variables. The value of each is one literal, or one secret that comes
	// from the environment.
	Env []grant.Variable
	// Reads are the names of secrets that it reads as files.
	Reads    []string
	User     int
	Internet bool
	// Health is a program of the image, with its arguments.
	Health []string
	Memory int64 // bytes
	CPU    int   // thousandths of a processor
	// Writable are folders that are empty when it starts.
	Writable []string
	Volumes  []ContainerVolume
	Range    diag.Range
}

// ContainerVolume is a volume block: a folder that outlives its container. Those of one
// name are one volume, of one Host and Size.
type ContainerVolume struct {
	Name, Target string
	// Host is a path of the machine on which Compose runs, "" for a volume of its own.
	Host      string
	ReadOnly  bool
	Size      int64 // bytes
	NameRange diag.Range
}

// neighbours are what the container blocks of a file may not have twice, and what they
// refer to.
type neighbours struct {
	secrets []Secret
	hosts   map[string]*hclsyntax.Block // upstream blocks
	volumes map[string]ContainerVolume
}

// upstreamContainer has the upstream be where its container is.
func (d *decoder) upstreamContainer(b *hclsyntax.Block, u *Upstream) {
	d.onlyWith(b, "private_networks", "url")
	d.upstreamHTTP(b, u)
	if c := u.Container; c.Port > 0 && c.Path != "" {
		u.reach(container.URL(u.Name, c.Port, c.Path), true)
	}
}

// container decodes a container block.
func (d *decoder) container(b *hclsyntax.Block, upstream *hclsyntax.Block, n *neighbours) *Container {
	d.check(b.Body, rules["container"], "a container block", b.DefRange())
	c := &Container{Range: d.f.rng(b.DefRange())}
	d.containerHost(upstream, n)
	c.Image = d.fitting(b.Body, "image", container.IsImage, "this is not the name of an image", `write it as in "ghcr.io/github/github-mcp-server:v1", with a registry and a tag if it has them`)
	if c.Image != "" && container.Moves(c.Image) {
		d.warn("bad-value", d.f.rng(b.Body.Attributes["image"].Expr.Range()), "this image can be another one at each start", "write the tag of a version, as in \"…:v1\", or a digest")
	}
	c.Port, _ = d.whole(b.Body, "port", container.MinPort, container.MaxPort)
	c.Path = d.fitting(b.Body, "path", container.IsURLPath, "this is not the path of a URL", `write it as in "/mcp"`)
	if b.Body.Attributes["path"] == nil {
		c.Path = container.DefaultPath
	}
	c.Command, c.Health = d.commandWords(b.Body, "command"), d.commandWords(b.Body, "health")
	d.checkProgram(b.Body, "health", c.Health)
	c.Env = d.environment(b.Body, d.upstreamVariable, func(x hclsyntax.Expression) ([]grant.Part, bool) {
		parts, ok := d.secretText(x) // files hold it, so that it may not be sensitive
		return parts, ok && d.holds(x, parts, n.secrets)
	})
	c.Reads = d.containerReads(b.Body, n.secrets)
	c.User, _ = d.whole(b.Body, "user", 1, container.MaxUser)
	c.Internet, _ = d.boolean(b.Body, "internet", false)
	c.Memory = d.size(b.Body, "memory", container.MaxMemory)
	if c.Memory > 0 && c.Memory < container.MinMemory {
		d.fail("bad-value", d.f.rng(b.Body.Attributes["memory"].Expr.Range()), "no server can do with so little memory", "write at least \"16MiB\"")
	}
	c.CPU = d.processors(b.Body)
	d.containerFolders(b, c, n)
	return c
}

// fitting decodes a text that has to be like a rule says.
func (d *decoder) fitting(body *hclsyntax.Body, name string, fits func(string) bool, problem, detail string) string {
	text, ok := d.text(body, name)
	if ok && !fits(text) {
		d.fail("bad-value", d.f.rng(body.Attributes[name].Expr.Range()), problem, detail)
		return ""
	}
	return text
}

// containerHost looks at the host name that the server of an upstream has in its
// container.
func (d *decoder) containerHost(upstream *hclsyntax.Block, n *neighbours) {
	const other = "give the upstream another name"
	host, where := container.Host(upstream.Labels[0]), d.f.rng(upstream.LabelRanges[0])
	first, taken := n.hosts[host]
	switch {
	case !isName(upstream.Labels[0]): // is told
	case !container.IsLabel(host):
		d.fail("bad-name", where, "no container can have this name as its host name", "use letters, digits, _ and -, of which the first is a letter, and the last a letter or a digit")
	case container.Reserved(host) != "":
		d.fail("bad-name", where, fmt.Sprintf("no container can be called %q: %s", host, container.Reserved(host)), other)
	case taken && first.Labels[0] != upstream.Labels[0]:
		d.fail("bad-name", where, fmt.Sprintf("two containers would have the host name %q", host), other, diag.Note{Range: d.f.rng(first.LabelRanges[0]), Message: "the first one is here"})
	default:
		n.hosts[host] = upstream
	}
}

// commandWords decodes those of a command of a container.
func (d *decoder) commandWords(body *hclsyntax.Body, name string) []string {
	list, ok := d.strings(body, name)
	if !ok || !d.few(body, name, len(list)) {
		return nil
	}
	for _, e := range list {
		if len(e.text) > container.MaxText || !container.IsText(e.text) {
			d.fail("bad-value", d.f.rng(e.where), "this cannot be an argument", fmt.Sprintf("write at most %d KiB of text, without NUL", container.MaxText>>10))
		}
	}
	return textsOf(list)
}

// few reports a list that is too long for a container, and returns false for it.
func (d *decoder) few(body *hclsyntax.Body, name string, n int) bool {
	if n > container.MaxItems {
		d.fail("too-large", d.f.rng(body.Attributes[name].Expr.Range()), fmt.Sprintf("the list %q is too long", name), fmt.Sprintf("write at most %d items", container.MaxItems))
	}
	return n <= container.MaxItems
}

// checkProgram reports a list that does not begin with a program.
func (d *decoder) checkProgram(body *hclsyntax.Body, name string, words []string) {
	attr := body.Attributes[name]
	switch {
	case attr == nil || words == nil:
	case len(words) == 0 || words[0] == "":
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q names no program", name), "write a program of the image and its arguments")
	case len(words) == 1 && strings.ContainsFunc(words[0], unicode.IsSpace):
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), "the command is one word with blanks in it, and no shell takes it apart", "write each word for itself, as in [\"wget\", \"-q\", \"…\"]")
	}
}

// processors decodes a number of processors, in thousandths.
func (d *decoder) processors(body *hclsyntax.Body) int {
	v, ok := d.typed(body, "cpus", numberKind)
	if !ok {
		return 0
	}
	f, _ := new(big.Float).Mul(v.AsBigFloat(), big.NewFloat(1000)).Float64()
	n := int(max(min(f, container.MaxCPU+1), 0) + 0.5)
	if n < 1 || n > container.MaxCPU {
		d.fail("bad-value", d.f.rng(body.Attributes["cpus"].Expr.Range()), "\"cpus\" is out of bounds", fmt.Sprintf("write a number of processors from 0.001 to %d, such as 0.5", container.MaxCPU/1000))
		return 0
	}
	return n
}
