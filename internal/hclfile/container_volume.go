package hclfile

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/container"
)

// containerFolders decodes what a container may write to, and the volumes that are
// mounted in it.
func (d *decoder) containerFolders(b *hclsyntax.Block, c *Container, n *neighbours) {
	const form = `write an absolute path in its shortest form, of letters, digits and ._@+-, such as "/data", and none of the system's`
	targets := named{}
	mounts := func(where hcl.Range, folder string) bool {
		if !container.IsFolder(folder) {
			d.fail("bad-value", d.f.rng(where), "no folder can be mounted here", form)
			return false
		}
		if folder == "/tmp" {
			d.fail("bad-value", d.f.rng(where), "every container has a /tmp that it may write to", "remove it, or name another folder")
			return false
		}
		return d.claimName(targets, folder, where, "%q is mounted twice", folder)
	}
	names := 0
	for _, inner := range blocks(b.Body, rules["container"]) {
		if names++; names == container.MaxItems+1 {
			d.fail("too-large", d.f.rng(inner.DefRange()), "the container has too many volumes", fmt.Sprintf("write at most %d", container.MaxItems))
			break
		}
		c.Volumes = append(c.Volumes, d.containerVolume(inner, mounts, n))
	}
	list, _ := d.strings(b.Body, "writable")
	if !d.few(b.Body, "writable", len(list)) {
		return
	}
	for _, e := range list {
		if mounts(e.where, e.text) {
			c.Writable = append(c.Writable, e.text)
		}
	}
}

func (d *decoder) containerVolume(b *hclsyntax.Block, mounts func(hcl.Range, string) bool, n *neighbours) ContainerVolume {
	d.check(b.Body, rules["volume"], "a volume block", b.DefRange())
	v := ContainerVolume{Name: b.Labels[0], NameRange: d.f.rng(b.LabelRanges[0])}
	switch {
	case !container.IsLabel(v.Name):
		d.fail("bad-name", v.NameRange, "the volume has a bad name", "use 1 to 63 lower-case letters, digits and -, of which the first is a letter and the last no -")
	case v.Name == container.StateVolume:
		d.fail("bad-name", v.NameRange, "this server keeps its state in the volume of this name", "give it another name")
	}
	if target, ok := d.text(b.Body, "target"); ok && mounts(b.Body.Attributes["target"].Expr.Range(), target) {
		v.Target = target
	}
	v.Host = d.fitting(b.Body, "host", container.IsFile, "this is not a path in its shortest form", `write it as in "/srv/data" or "./data"`)
	v.ReadOnly, _ = d.boolean(b.Body, "read_only", false)
	v.Size = d.size(b.Body, "size", container.MaxMemory)
	first, shared := n.volumes[v.Name]
	switch {
	case !shared:
		n.volumes[v.Name] = v
	case first.Host != v.Host || first.Size != v.Size:
		d.fail("contradiction", v.NameRange, fmt.Sprintf("the volume %q has another \"host\" or \"size\" elsewhere", clip(v.Name)), "say the same of it everywhere, or give it another name",
			diag.Note{Range: first.NameRange, Message: "the first one is here"})
	}
	return v
}
