package hclfile

import "regexp"

// declaration is the beginning of a variable or secret block on a line of its own.
var declaration = regexp.MustCompile(`(?m)^[ \t]*(variable|secret)[ \t]+"([^"\n]*)"`)

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
