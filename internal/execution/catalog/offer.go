package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// Offer is what an item that is no tool says of itself beside its name.
type Offer struct {
	// ListedAs is the name that clients see: that of the item, but for a file
	// of a folder its path.
	ListedAs string
	// Template is that of a template; nil otherwise.
	Template *uritemplate.Template
	// MIMEType is "" when the body decides.
	MIMEType string
	// Size is in bytes; negative when the body decides.
	Size int64
	// Annotations is a JSON object; nil for none.
	Annotations json.RawMessage
	// Arguments are those of a prompt, and the variables of a template.
	Arguments []Argument
}

type Argument struct {
	Name, Title, Description string
	Required                 bool
	// matches reports whether a value may be that of the variable; nil allows any.
	matches func(string) bool
	// completion is nil when nothing completes the value.
	completion Body
}

// NewArgument returns an argument whose value is completed by a body; nil for nothing that
// completes it.
func NewArgument(name, title, description string, required bool, completion Body) Argument {
	return Argument{Name: name, Title: title, Description: description, Required: required, completion: completion}
}

// Schema returns the schema of the arguments, all of which are strings.
func (o *Offer) Schema() json.RawMessage {
	properties := make(map[string]any, len(o.Arguments))
	required := []string{}
	for i := range o.Arguments {
		properties[o.Arguments[i].Name] = map[string]string{"type": "string"}
		if o.Arguments[i].Required {
			required = append(required, o.Arguments[i].Name)
		}
	}
	slices.Sort(required)
	// Plain data always encodes.
	encoded, _ := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	return encoded
}

// Completion returns what completes an argument, nil when nothing does, and
// whether there is such an argument.
func (o *Offer) Completion(argument string) (body Body, known bool) {
	for i := range o.Arguments {
		if o.Arguments[i].Name == argument {
			return o.Arguments[i].completion, true
		}
	}
	return nil, false
}

// Typed returns what is known while an argument is completed: as args what is
// filled in and what was typed, and as input both as the body takes them. The
// error is for the caller.
func (o *Offer) Typed(argument string, request json.RawMessage) (args map[string]any, input json.RawMessage, err error) {
	var typed struct {
		Value  string            `json:"value"`
		Params map[string]string `json:"params"`
	}
	if len(request) > 0 && json.Unmarshal(request, &typed) != nil {
		return nil, nil, errors.New("a completion takes a value and what is filled in, all of them strings")
	}
	args = map[string]any{}
	params := map[string]string{}
	for name, value := range typed.Params {
		if _, known := o.Completion(name); known {
			args[name], params[name] = value, value
		}
	}
	args[argument] = typed.Value
	// Strings always encode.
	input, _ = json.Marshal(map[string]any{"value": typed.Value, "params": params})
	return args, input, nil
}

// later returns the required arguments that stand behind one that is completed:
// who completes that one has not filled them in yet.
func (o *Offer) later() []string {
	if o == nil {
		return nil
	}
	var names []string
	completes := false
	for i := range o.Arguments {
		if completes && o.Arguments[i].Required {
			names = append(names, o.Arguments[i].Name)
		}
		completes = completes || o.Arguments[i].completion != nil
	}
	return names
}

// match returns the variables of the template in a URI, and false when there
// are none.
func (o *Offer) match(uri *uritemplate.URI) (map[string]string, bool) {
	values, ok := o.Template.Match(uri)
	if !ok {
		return nil, false
	}
	for i := range o.Arguments {
		a := &o.Arguments[i]
		if value, given := values[a.Name]; given && a.matches != nil && !a.matches(value) {
			return nil, false
		}
	}
	return values, true
}

// annotationsOf returns annotations as MCP has them, nil for none.
func annotationsOf(a *definition.Annotations) json.RawMessage {
	if a == nil {
		return nil
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(struct {
		Audience []string `json:"audience,omitempty"`
		Priority *float64 `json:"priority,omitempty"`
	}{a.Audience, a.Priority})
	return encoded
}

// addUpstreams returns what the operator's file says, with the upstreams that the program
// names beside those of the file.
func (b *Builder) addUpstreams(config *definition.Config) (with *definition.Config, problems diag.List) {
	if len(b.options.Upstreams) == 0 {
		return config, nil
	}
	more := *config
	more.Upstreams = slices.Clone(config.Upstreams)
	for _, u := range b.options.Upstreams {
		if i := slices.IndexFunc(config.Upstreams, func(other definition.Upstream) bool { return other.Name == u.Name }); i >= 0 {
			problems = append(problems, diag.Diagnostic{
				Code: "duplicate-upstream", Range: config.Upstreams[i].NameRange,
				Summary: fmt.Sprintf("the upstream %q is named by %s, too", u.Name, u.NameRange.File), Detail: "remove the block, or give one of the two another name",
			})
			continue
		}
		more.Upstreams = append(more.Upstreams, u)
	}
	return &more, problems
}

// placed returns upstreams with paths that are relative to the operator's file made those
// that the process opens.
func (b *Builder) placed(blocks []definition.Upstream) []definition.Upstream {
	folder := filepath.Dir(filepath.FromSlash(b.options.ConfigPath))
	blocks = slices.Clone(blocks)
	for i := range blocks {
		u := &blocks[i]
		u.Dir = within(folder, u.Dir)
		if len(u.Command) > 0 && strings.ContainsAny(u.Command[0], `/\`) {
			u.Command = slices.Clone(u.Command)
			if u.Command[0] = within(folder, u.Command[0]); !strings.ContainsAny(u.Command[0], `/\`) {
				u.Command[0] = "." + string(filepath.Separator) + u.Command[0] // and not one of PATH
			}
		}
	}
	return blocks
}

// overlapSteps is how long it may take to learn which templates have no URI in common:
// those of which it is not known then are taken to have one.
const overlapSteps = 2_000_000

// resourceRule is a policy, a limit or a hook, as it is called, and the resources that it is
// about. Author says that it is no rule of the operator's file.
type resourceRule struct {
	what, name string
	targets    definition.Targets
	author     bool
}

func (r *resourceRule) covers(i *Item) bool { return covers(r.targets, i.Kind, i.Name) }

// resourceRules returns those that are about some resources and not about others.
func resourceRules(found *build) (rules []resourceRule) {
	author := false
	add := func(what, name string, targets definition.Targets) {
		if len(targets.Resources) > 0 {
			rules = append(rules, resourceRule{what, name, targets, author})
		}
	}
	addAll := func(policies []definition.Policy, limits []definition.Limit, hooks []definition.Hook) {
		for i := range policies {
			add("policy", policies[i].Name, policies[i].Targets)
		}
		for i := range limits {
			add("limit", limits[i].Name, limits[i].Targets)
		}
		for i := range hooks {
			add("hook", hooks[i].Name, hooks[i].Targets)
		}
	}
	addAll(found.config.Policies, found.config.RateLimits, found.config.Hooks)
	author = true
	addAll(found.policies, found.limits, found.hooking)
	return rules
}

// checkShadows reports what is read in the place of another resource that a rule of the
// operator is about, and is not under that rule itself: what stands at an address would
// get past the operator by standing before what was meant.
func (k *linker) checkShadows() {
	s := &shadows{rules: resourceRules(k.found), told: map[[2]diag.Range]bool{}}
	for _, pair := range k.hidden {
		s.look(pair[0], pair[1], func() bool { return true })
	}
	s.lookAll(k.catalog.templates, k.catalog.Entries[Resources], k.catalog.before)
	k.found.report(s.found)
}

// lookAll looks at all pairs of which one may be read in the place of the other. The
// templates are in the order in which they are tried.
func (s *shadows) lookAll(templates, resources []*Entry, before func(upstream, other string) bool) {
	if len(s.rules) == 0 {
		return
	}
	steps := overlapSteps
	for i, t := range templates {
		for _, e := range resources {
			first, second := e.Item, t.Item
			if e.Upstream != "" && before(t.Upstream, e.Upstream) {
				first, second = second, first
			}
			s.look(first, second, func() bool {
				if !strings.HasPrefix(e.Address, t.Offer.Template.Prefix()) {
					return false
				}
				_, ok := t.Offer.match(uritemplate.NewURI(e.Address))
				return ok
			})
		}
		for _, earlier := range templates[:i] {
			s.look(earlier.Item, t.Item, func() bool { return mayOverlap(earlier.Offer.Template, t.Offer.Template, &steps) })
		}
	}
}

func mayOverlap(a, b *uritemplate.Template, steps *int) bool {
	if !strings.HasPrefix(a.Prefix(), b.Prefix()) && !strings.HasPrefix(b.Prefix(), a.Prefix()) {
		return false
	}
	return a.Overlaps(b, steps) || *steps <= 0
}

// shadows are the resources that are in the place of others.
type shadows struct {
	rules []resourceRule
	// leaveOut excludes what an upstream offers: that gets past no rule of an author either.
	// It is nil where there are no upstreams, and else only what they offer is looked at.
	leaveOut func(item *Item, why string)
	told     map[[2]diag.Range]bool
	found    diag.List
}

// look reports that first is read in the place of second, if it is: inPlace tells.
func (s *shadows) look(first, second *Item, inPlace func() bool) {
	if s.leaveOut != nil && first.Upstream == "" && second.Upstream == "" {
		return
	}
	at := slices.IndexFunc(s.rules, func(r resourceRule) bool {
		return (!r.author || first.Upstream != "") && r.covers(second) && !r.covers(first)
	})
	if at < 0 || !inPlace() {
		return
	}
	rule := &s.rules[at]
	for _, offered := range []*Item{first, second} {
		if offered.Upstream != "" {
			s.leaveOut(offered, fmt.Sprintf("with it one would be read in the place of another resource that the %s %q is about", rule.what, rule.name))
			return
		}
	}
	pair := [2]diag.Range{first.Where, second.Where}
	if s.told[pair] {
		return // of another file of a folder
	}
	s.told[pair] = true
	s.found = append(s.found, diag.Diagnostic{
		Code: "shadowed-rule", Range: first.Where,
		Summary: fmt.Sprintf("%s %q is read in the place of %s %q, which the operator's %s %q is about", first.Kind, first.Name, second.Kind, second.Name, rule.what, rule.name),
		Detail:  fmt.Sprintf("choose another URI, or ask the operator to name %q in the %s, too", first.Name, rule.what),
		Notes:   []diag.Note{{Range: second.Where, Message: fmt.Sprintf("%s %q", second.Kind, second.Name)}},
	})
}
