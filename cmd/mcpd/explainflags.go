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

// explainCallFlags holds the flags that describe a hypothetical call.
type explainCallFlags struct {
	kind, complete, args            string
	principal, agent, source, calls string
	result, at                      string
}

// kindNames returns the values of --kind, indexed by [call.Kind].
func kindNames() []string {
	return []string{call.Tools: "tool", call.Resources: "resource", call.Templates: "template", call.Prompts: "prompt"}
}

func (p *explainCallFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&p.args, "args", "", "pass this JSON `OBJECT` as the arguments")
	flags.StringVar(&p.principal, "principal", "", "call as the principal in this JSON `OBJECT`: id, kind, issuer, scopes, groups, claims, agent")
	flags.StringVar(&p.agent, "agent", "", "call as the agent in this JSON `OBJECT`: agent_id, model, request_id, metadata, verified")
	flags.StringVar(&p.source, "source", "", "call from the source in this JSON `OBJECT`: ip, listener")
	flags.StringVar(&p.calls, "call", "", "set the call attributes in this JSON `OBJECT`: id, via, depth, parent")
	flags.StringVar(&p.result, "result", "", "evaluate policies over the result `JSON`")
	flags.StringVar(&p.at, "at", "", "call at `TIME`, such as 2026-07-28 or 2026-07-28T09:30:00Z (default now)")
	flags.StringVar(&p.kind, "kind", "tool", "call this `KIND` of item: tool, resource, prompt or template (template only with --complete)")
	flags.StringVar(&p.complete, "complete", "", "explain the completion of the argument or variable `NAME`")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp))
}

// check rejects empty JSON flags.
func (p *explainCallFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"args", "principal", "agent", "source", "call", "result"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return usageError("--%s takes JSON", name)
		}
	}
	return nil
}

// hypotheticalCall returns the hypothetical call for the flags and the operands.
func (p *explainCallFlags) hypotheticalCall(e env, s *engine.Snapshot, name string, pairs []string) (of pipeline.HypotheticalCall, err error) {
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
			return of, usageError("--result is not JSON; write text in double quotes")
		}
	}
	return of, nil
}

func (p *explainCallFlags) request(s *engine.Snapshot, name string, pairs []string) (r call.Request, err error) {
	kind := slices.Index(kindNames(), p.kind)
	if kind < 0 {
		return r, usageError("--kind takes one of %s", strings.Join(kindNames(), ", "))
	}
	r.Kind, r.Name, r.Argument = call.Kind(kind), name, p.complete
	switch {
	case r.Argument != "" && r.Kind != call.Prompts && r.Kind != call.Templates:
		return r, usageError("--complete is for --kind prompt and --kind template")
	case r.Argument != "":
		return r, p.completion(&r, pairs)
	case r.Kind == call.Templates:
		return r, usageError("name the variable of the template with --complete, or a URI that it matches with --kind resource")
	case r.Kind == call.Resources && (p.args != "" || len(pairs) > 0):
		return r, usageError("a resource takes no arguments: put the variables of a template into the URI")
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

// completion turns a request into a completion request. The argument to complete holds
// the typed text; the others are its context.
func (p *explainCallFlags) completion(r *call.Request, pairs []string) error {
	given, err := textsOf(p.args, pairs)
	if err != nil {
		return argsFlag(err)
	}
	params := map[string]string{}
	if err := json.Unmarshal(given, &params); err != nil {
		return usageError("the arguments of a completion must be strings")
	}
	typed := params[r.Argument]
	delete(params, r.Argument)
	r.Arguments, err = json.Marshal(map[string]any{"value": typed, "params": params})
	return err
}

// argsFlag renames --json to --args in an error, because --json has another meaning
// here.
func argsFlag(err error) error {
	if exit, ok := err.(*exitError); ok {
		return &exitError{code: exit.code, text: strings.ReplaceAll(exit.text, "--json", "--args")}
	}
	return err
}

// caller sets the caller and its source. A principal bound to an agent implies that
// agent.
func (p *explainCallFlags) caller(of *pipeline.HypotheticalCall) (err error) {
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
			return usageError("--agent: %v", err)
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
	if !slices.Contains(principalKinds, string(who.Kind)) {
		return who, usageError("--principal: unknown kind %q; use one of %s", diag.Printable(string(who.Kind)), strings.Join(principalKinds, ", "))
	}
	if who.Kind == identity.KindAnonymous && who.ID != identity.Anonymous().ID {
		return who, usageError("--principal: an id needs a kind: local, key, jwt or mtls")
	}
	return who, nil
}

func (p *explainCallFlags) how(of *pipeline.HypotheticalCall) error {
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
		return usageError("--call: via is one of %s", strings.Join(vias[1:], ", "))
	}
	of.ID, of.Depth, of.Parent, of.Request.Via = made.ID, made.Depth, made.Parent, call.Via(made.Via)
	return nil
}

// jsonOf decodes the JSON object of a flag, and rejects unknown members.
func jsonOf(flag, text string, into any) error {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return usageError("%s takes a JSON object", flag)
	}
	if err := engine.CheckArguments([]byte(text)); err != nil {
		return usageError("%s: %v", flag, err)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var other *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &other):
		return usageError("%s: %s has the wrong type", flag, cmp.Or(other.Field, "it"))
	default:
		return usageError("%s: %v", flag, strings.TrimPrefix(err.Error(), "json: "))
	}
}
