package compose

import (
	"fmt"
	"slices"
	"strings"
)

// local returns a path as Compose has it, which takes ~ in front for a home.
func local(name string) string {
	if name[0] != '/' && name[0] != '.' {
		return "./" + name
	}
	return name
}

// variables returns the environment of a service. A secret is not in it: Compose
// takes the value from its own environment, and does not start without one.
func (d *Deployment) variables(list []Variable) any {
	if len(list) == 0 {
		return nil
	}
	m := mapping()
	for _, v := range list {
		value := literal(v.Value)
		if v.Secret != "" {
			value = fmt.Sprintf("${%s:?}", d.secret(v.Secret).Environment)
		}
		joined(m, is(v.Name, value))
	}
	return m
}

// wanted says, below the first line of docker-compose.yml, which variables Compose
// takes from its own environment, if any.
func (d *Deployment) wanted() string {
	var names []string
	for _, s := range d.used() {
		if s.Environment != "" && !slices.Contains(names, s.Environment) {
			names = append(names, s.Environment)
		}
	}
	if names == nil {
		return ""
	}
	return "\nEvery docker compose command wants variables, which are set where it is called, or stand as\n" +
		"lines NAME='value' in a file .env beside this one, which nobody else reads and no repository\n" +
		"has: " + strings.Join(names, ", ") + "."
}

// sources returns where Compose takes those secrets from that are read as files.
func (d *Deployment) sources() any {
	read := map[string]bool{}
	for _, name := range d.Reads {
		read[name] = true
	}
	for i := range d.Upstreams {
		for _, name := range d.Upstreams[i].Reads {
			read[name] = true
		}
	}
	m := mapping()
	for _, s := range d.Secrets {
		if read[s.Name] {
			joined(m, is(s.Name, mapping(is("file", literal(local(s.File))))))
		}
	}
	if len(m.Names) == 0 {
		return nil
	}
	return m
}

// volumes returns the volumes that Compose keeps.
func (d *Deployment) volumes() any {
	m, seen := mapping(), map[string]bool{}
	if d.State {
		joined(m, is(stateVolume, mapping()))
	}
	for i := range d.Upstreams {
		for _, v := range d.Upstreams[i].Volumes {
			if v.Host == "" && !seen[v.Name] {
				seen[v.Name] = true
				joined(m, is(v.Name, mapping()))
			}
		}
	}
	if len(m.Names) == 0 {
		return nil
	}
	return m
}

// ownership says how upstreams come to own the volumes that they write to, if any do.
// Compose has nothing that makes a volume for a user who is not root.
func (d *Deployment) ownership() string {
	var lines, seen []string
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		for _, v := range u.Volumes {
			if v.Host == "" && !v.ReadOnly && !slices.Contains(seen, v.Name) {
				seen = append(seen, v.Name)
				lines = append(lines, fmt.Sprintf("  docker run --rm --volume %s_%s:/volume busybox:1.37 chown -R %d:%d /volume", d.Name, v.Name, u.User, u.User))
			}
		}
	}
	if lines == nil {
		return ""
	}
	return "A new volume belongs to root, or to whom the image has its folder belong. Where that\n" +
		"is not the user of the service, it cannot write there, unless before the first start:\n" +
		"  docker compose create\n" + strings.Join(lines, "\n")
}
