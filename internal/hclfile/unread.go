package hclfile

import (
	"regexp"
	"slices"
)

// declaration is the beginning of a variable or secret block on a line of its own.
var declaration = regexp.MustCompile(`(?m)^[ \t]*(variable|secret)[ \t]+"([^"\n]*)"`)

// presume adds what another config declares and this one does not.
func (c *Config) presume(other *Config) {
	for name, v := range other.Variables {
		if _, declared := c.Variables[name]; !declared {
			c.Variables[name] = v
		}
	}
	for _, s := range other.Secrets {
		if !slices.Contains(secretNames(c.Secrets), s.Name) {
			c.Secrets = append(c.Secrets, s)
		}
	}
}

// misspelt is what blocks declare whose names are told to be written wrong.
func (f *File) misspelt() *Config {
	c := &Config{Variables: map[string]Variable{}}
	r := fileRules[f.kind]
	for _, b := range f.body.Blocks {
		if r.hasBlock(b.Type) || len(b.Labels) != 1 {
			continue
		}
		switch name := b.Labels[0]; r.meaning(b.Type) {
		case "variable":
			c.Variables[name] = Variable{Name: name}
		case "secret":
			c.Secrets = append(c.Secrets, Secret{Name: name})
		}
	}
	return c
}

// UnreadConfig is what the text of an operator's file that cannot be understood
// seems to declare: variables of unknown values and secrets, so that no tool
// file is blamed for them.
func UnreadConfig(text []byte) *Config {
	c := &Config{Variables: map[string]Variable{}}
	if len(text) > maxFile {
		return c
	}
	for _, found := range declaration.FindAllSubmatch(text, maxDefinitions) {
		if name := string(found[2]); string(found[1]) == "variable" {
			c.Variables[name] = Variable{Name: name}
		} else {
			c.Secrets = append(c.Secrets, Secret{Name: name})
		}
	}
	return c
}
