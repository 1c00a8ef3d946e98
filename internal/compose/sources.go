package compose

import (
	"fmt"
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
