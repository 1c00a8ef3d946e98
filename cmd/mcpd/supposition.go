package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
)

// supposition are the flags that describe a call which is not made.
type supposition struct {
	kind, complete, args            string
	principal, agent, source, calls string
	result, at                      string
}

// kindNames are the kinds as flags name them, each at its own place.
func kindNames() []string {
	return []string{call.Tools: "tool", call.Resources: "resource", call.Templates: "template", call.Prompts: "prompt"}
}

func (p *supposition) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&p.kind, "kind", "tool", "what is called: tool, resource, prompt, or template, of which a variable is completed")
	flags.StringVar(&p.complete, "complete", "", "judge the completion of the argument or the variable `NAME`")
	flags.StringVar(&p.args, "args", "", "pass this JSON `OBJECT` as the arguments")
	flags.StringVar(&p.principal, "principal", "", "call as who this JSON `OBJECT` says: id, kind, issuer, scopes, groups, claims, agent")
	flags.StringVar(&p.agent, "agent", "", "claim what this JSON `OBJECT` says: agent_id, model, request_id, metadata; and verified")
	flags.StringVar(&p.source, "source", "", "come from where this JSON `OBJECT` says: ip, listener")
	flags.StringVar(&p.calls, "call", "", "be made as this JSON `OBJECT` says: id, via, depth, parent")
	flags.StringVar(&p.result, "result", "", "judge this `JSON` as what the call returns")
	flags.StringVar(&p.at, "at", "", "call at `TIME`, such as 2026-07-28 or 2026-07-28T09:30:00Z; now by default")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp))
}

// check refuses flags that say nothing.
func (p *supposition) check(cmd *cobra.Command) error {
	for _, name := range []string{"args", "principal", "agent", "source", "call", "result"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return usage("--%s takes JSON", name)
		}
	}
	return nil
}

// of returns the case that the flags describe, of what is called by a name.
func (p *supposition) of(e env, s *engine.Snapshot, name string, pairs []string) (of pipeline.HypotheticalCall, err error) {
	if of.Time, err = timeOf("--at", p.at); err != nil {
		return of, err
	}
	of.Request, err = p.request(s, name, pairs)
	if err != nil {
		return of, err
	}
	of.Request.Caller = callerOf(e, "mcpd-call")
	if err := cmp.Or(p.caller(&of), p.how(&of)); err != nil {
		return of, err
	}
	if p.result != "" {
		if of.Result = json.RawMessage(p.result); !json.Valid(of.Result) {
			return of, usage("--result: it is no JSON; a text is written in double quotes")
		}
	}
	return of, nil
}

func (p *supposition) request(s *engine.Snapshot, name string, pairs []string) (r call.Request, err error) {
	kind := slices.Index(kindNames(), p.kind)
	if kind < 0 {
		return r, usage("--kind takes one of %s", strings.Join(kindNames(), ", "))
	}
	r.Kind, r.Name, r.Argument = call.Kind(kind), name, p.complete
	switch {
	case r.Argument != "" && r.Kind != call.Prompts && r.Kind != call.Templates:
		return r, usage("--complete is for --kind prompt and --kind template")
	case r.Argument != "":
		return r, p.completion(&r, pairs)
	case r.Kind == call.Templates:
		return r, usage("name the variable of the template with --complete, or a URI that it matches with --kind resource")
	case r.Kind == call.Resources && (p.args != "" || len(pairs) > 0):
		return r, usage("a resource takes no arguments: those of a template stand in the URI")
	case r.Kind == call.Resources:
		return r, nil
	case r.Kind == call.Prompts:
		r.Arguments, err = textsOf(p.args, pairs)
		return r, argsFlag(err)
	}
	var schema json.RawMessage
	if known := s.Tool(name); known != nil {
		schema = known.Metadata().InputSchema
	}
	r.Arguments, err = argumentsOf(p.args, pairs, schema)
	return r, argsFlag(err)
}

// completion makes a request that of a completion: what is typed is the argument of that
// name, and the others are filled in.
func (p *supposition) completion(r *call.Request, pairs []string) error {
	given, err := textsOf(p.args, pairs)
	if err != nil {
		return argsFlag(err)
	}
	params := map[string]string{}
	if err := json.Unmarshal(given, &params); err != nil {
		return usage("the arguments that are completed with are texts")
	}
	typed := params[r.Argument]
	delete(params, r.Argument)
	r.Arguments, err = json.Marshal(map[string]any{"value": typed, "params": params})
	return err
}

// argsFlag words the mistakes of arguments for a verb whose --json is another flag.
func argsFlag(err error) error {
	if exit, ok := err.(*exitError); ok {
		return &exitError{code: exit.code, text: strings.ReplaceAll(exit.text, "--json", "--args")}
	}
	return err
}

// caller reads who calls, and from where. A principal whose credential is bound to an agent
// is that agent.
func (p *supposition) caller(of *pipeline.HypotheticalCall) (err error) {
	c := &of.Request.Caller
	if p.principal != "" {
		if c.Principal, err = principalOf(p.principal); err != nil {
			return err
		}
		c.Agent = identity.Agent{AgentID: identity.AnonymousAgent}
	}
	if p.agent != "" {
		claimed := struct {
			AgentID   string            `json:"agent_id"`
			Model     string            `json:"model"`
			RequestID string            `json:"request_id"`
			Metadata  map[string]string `json:"metadata"`
			Verified  bool              `json:"verified"`
		}{AgentID: identity.AnonymousAgent}
		if err := jsonOf("--agent", p.agent, &claimed); err != nil {
			return err
		}
		c.Agent = identity.Agent(claimed)
	}
	if c.Principal.Agent != "" {
		if c.Agent, err = c.Principal.Bind(c.Agent); err != nil {
			return usage("--agent: %v", err)
		}
	}
	if p.source == "" {
		return nil
	}
	from := struct{ IP, Listener string }{}
	err = jsonOf("--source", p.source, &from)
	c.Source = identity.Source{IP: from.IP, Listener: from.Listener}
	return err
}

func principalOf(text string) (identity.Principal, error) {
	who := identity.Anonymous()
	if err := jsonOf("--principal", text, &who); err != nil {
		return who, err
	}
	kinds := []string{
		string(identity.KindAnonymous), string(identity.KindLocal), string(identity.KindKey), string(identity.KindToken), string(identity.KindCertificate),
	}
	if !slices.Contains(kinds, string(who.Kind)) {
		return who, usage("--principal: there is no kind %q; it is one of %s", diag.Printable(string(who.Kind)), strings.Join(kinds, ", "))
	}
	if who.Kind == identity.KindAnonymous && who.ID != identity.Anonymous().ID {
		return who, usage("--principal: one that has an id has a kind, too: local, key, jwt or mtls")
	}
	return who, nil
}

func (p *supposition) how(of *pipeline.HypotheticalCall) error {
	if p.calls == "" {
		return nil
	}
	made := struct {
		ID, Via, Parent string
		Depth           int
	}{}
	if err := jsonOf("--call", p.calls, &made); err != nil {
		return err
	}
	vias := []string{"", string(call.ViaClient), string(call.ViaCode), string(call.ViaTool), string(call.ViaTest)}
	if !slices.Contains(vias, made.Via) {
		return usage("--call: via is one of %s", strings.Join(vias[1:], ", "))
	}
	of.ID, of.Depth, of.Parent, of.Request.Via = made.ID, made.Depth, made.Parent, call.Via(made.Via)
	return nil
}

// jsonOf reads the JSON object of a flag into a value, and refuses members that it has not.
func jsonOf(flag, text string, into any) error {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return usage("%s takes a JSON object", flag)
	}
	if err := engine.CheckArguments([]byte(text)); err != nil {
		return usage("%s: %v", flag, err)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var other *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &other):
		return usage("%s: %s is of another type than it should be", flag, cmp.Or(other.Field, "it"))
	default:
		return usage("%s: %v", flag, strings.TrimPrefix(err.Error(), "json: "))
	}
}
