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
func (p *supposition) of(e env, s *engine.Snapshot, name string, pairs []string) (of pipeline.Case, err error) {
	if of.Began, err = timeOf("--at", p.at); err != nil {
		return of, err
	}
	of.Request, err = p.request(s, name, pairs)
	if err != nil {
		return of, err
	}
	of.Request.Caller = callerOf(e, "mcpd-call")
	for _, read := range []func(*pipeline.Case) error{p.whoCalls, p.whichAgent, p.bind, p.fromWhere, p.how, p.returns} {
		if err := read(&of); err != nil {
			return of, err
		}
	}
	return of, nil
}

// request returns what is called, and with which arguments.
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

func (p *supposition) whoCalls(of *pipeline.Case) error {
	if p.principal == "" {
		return nil
	}
	who := identity.Anonymous()
	if err := jsonOf("--principal", p.principal, &who); err != nil {
		return err
	}
	kinds := []string{
		string(identity.KindAnonymous), string(identity.KindLocal), string(identity.KindKey), string(identity.KindToken), string(identity.KindCertificate),
	}
	if !slices.Contains(kinds, string(who.Kind)) {
		return usage("--principal: there is no kind %q; it is one of %s", diag.Printable(string(who.Kind)), strings.Join(kinds, ", "))
	}
	if who.Kind == identity.KindAnonymous && who.ID != identity.Anonymous().ID {
		return usage("--principal: one that has an id has a kind, too: local, key, jwt or mtls")
	}
	of.Request.Caller.Principal, of.Request.Caller.Agent = who, identity.Agent{AgentID: identity.AnonymousAgent}
	return nil
}

// bind takes the agent for the one that the credential of the principal is bound to.
func (p *supposition) bind(of *pipeline.Case) (err error) {
	caller := &of.Request.Caller
	if caller.Principal.Agent == "" {
		return nil
	}
	if caller.Agent, err = caller.Principal.Bind(caller.Agent); err != nil {
		return usage("--agent: %v", err)
	}
	return nil
}

func (p *supposition) whichAgent(of *pipeline.Case) error {
	if p.agent == "" {
		return nil
	}
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
	of.Request.Caller.Agent = identity.Agent(claimed)
	return nil
}

func (p *supposition) fromWhere(of *pipeline.Case) error {
	if p.source == "" {
		return nil
	}
	from := struct{ IP, Listener string }{}
	if err := jsonOf("--source", p.source, &from); err != nil {
		return err
	}
	of.Request.Caller.Source = identity.Source{IP: from.IP, Listener: from.Listener}
	return nil
}

func (p *supposition) how(of *pipeline.Case) error {
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

func (p *supposition) returns(of *pipeline.Case) error {
	if p.result == "" {
		return nil
	}
	if !json.Valid([]byte(p.result)) {
		return usage("--result: it is no JSON; a text is written in double quotes")
	}
	of.Returned = json.RawMessage(p.result)
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
