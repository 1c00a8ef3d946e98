package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

// leaveView leaves the view and runs a dialog, until it is done or the server has ended. Ctrl-C cancels
// its context. chunk is what the user has typed already.
func (d *devSession) leaveView(ended <-chan struct{}, all <-chan typed, chunk []byte, run func(context.Context, *dialog)) {
	if err := d.screen.suspend(); err != nil {
		d.quit() // the terminal has gone
		return
	}
	ctx, cancel := context.WithCancel(d.stopped)
	in := newTypedInput(ctx)
	_ = in.add(typed{typedKeys, chunk})
	talk := d.newTypedDialog(in)
	done := make(chan struct{})
	go func() {
		defer close(done)
		finished := false
		defer func() {
			if !finished {
				d.screen.close() // before a panic is printed
			}
		}()
		run(ctx, talk)
		finished = true
	}()
	for open := true; open; {
		select {
		case <-done:
			open = false
		case <-ended:
			open = false
		case <-d.news:
			talk.repaint(d.env)
		case t := <-all:
			keys := t.kind == typedKeys
			switch {
			case keys && slices.Contains(t.text, ctrlC):
				cancel()
			case keys && slices.Contains(t.text, ctrlZ):
				d.env.service.stopJob()
			case keys && string(t.text) == string(rune(escape)): // the editor would wait for the rest of a sequence
			default:
				if err := in.add(t); err != nil {
					talk.say("  paste refused: %v\n", err)
				}
			}
		}
	}
	cancel()
	<-done
	if err := d.screen.open(); err != nil {
		d.quit()
	}
}

// callDialog lets the user call a tool of the running server, and record the call as a test.
func (d *devSession) callDialog(ctx context.Context, talk *dialog) {
	e := d.env
	e.stdout, e.stderr = talk.out, talk.out
	d.mu.Lock()
	o := d.running
	d.mu.Unlock()
	var err error
	switch state := d.viewNow(false); {
	case o != nil:
		err = d.callOf(ctx, e, talk, o)
	case state.Testing:
		err = errors.New("nothing is served yet: require_tests is set, and the tests are running. Try again when they have passed")
	case state.Broken:
		err = errors.New("nothing is served yet: correct the files first")
	default:
		err = errors.New("nothing is served yet: mcpd is starting. Try again in a moment")
	}
	switch {
	case errors.Is(err, errInputEnd), ctx.Err() != nil:
		return
	case err != nil && err.Error() != "":
		talk.say("mcpd: %s\n", diag.PrintableLines(err.Error(), "  "))
	}
	talk.awaitEnter()
}

// printAll prints the whole text of the view, so that the user can read and copy all of it.
func (d *devSession) printAll(_ context.Context, talk *dialog) {
	talk.say("%s", d.viewNow(false).full())
	talk.awaitEnter()
}

func (d *dialog) awaitEnter() {
	d.dropTyped()
	d.say("\n")
	_, _ = d.line("Press Enter to return.")
}

// callOf asks for a call of a server and makes it. It returns [errInputEnd] if the user wants none.
func (d *devSession) callOf(ctx context.Context, e env, talk *dialog, o *runningServer) error {
	s := o.server
	tool, err := askTool(talk, offeredBy(s.Snapshot()).tools)
	if err != nil {
		return err
	}
	arguments, err := askArguments(talk, tool.InputSchema)
	if err != nil {
		return err
	}
	recording := new(tooltest.Recording)
	request := call.Request{
		Name: tool.Name, Arguments: arguments, Caller: callerOf(e, "mcpd-dev"), Emit: recordingPrinter{printer{e}, recording},
		Can:       call.Capabilities{Form: true, URL: true, Sample: true, Roots: true},
		Cancelled: func(error) call.Cancellation { return call.Cancellation{By: call.CancelledByClient} },
	}
	talk.say("Calling %s. Ctrl-C cancels the call.\n", shown(tool.Name))
	result, err := execute(ctx, s, request, &answers{talk: talk}, recording)
	if err != nil || ctx.Err() != nil {
		return cmp.Or(err, errInputEnd)
	}
	f := callFlags{files: d.flags.files}
	question := "Record a test of this call?"
	if err := printAnswer(e, f.answerOf(result), false); err != nil {
		talk.say("%s\n", diag.PrintableLines(err.Error(), "  "))
	}
	if result.Err != nil {
		question = fmt.Sprintf("Record a test that expects the error %s?", result.Err.Code)
	}
	if !isRecordable(s, control.ItemName{Kind: "tool", Address: tool.Name}) {
		talk.say("There is no test to record: no file defines this tool.\n")
		return nil
	}
	if yes, err := talk.confirm(question); err != nil || !yes {
		return cmp.Or(err, errInputEnd)
	}
	talk.say("Trying the test. It runs at least twice, each time about as long as the call. Ctrl-C cancels.\n")
	recorded := recordedCall{recording, request, result, plainCaller(), &o.recorded}
	test, err := recorded.test(ctx, s)
	if err != nil {
		return fmt.Errorf("the call was not recorded: %w", err)
	}
	usual := filepath.Join(f.files.tools, "recorded.hcl")
	for {
		talk.dropTyped()
		typed, err := talk.line(fmt.Sprintf("File [%s]:", shown(usual)))
		if err != nil {
			return err
		}
		f.record = cmp.Or(strings.TrimSpace(typed), usual)
		if err = f.checkRecordFile(e); err == nil {
			err = appendTest(e, f.record, test)
		}
		if err == nil {
			return nil
		}
		talk.say("  %s\n", diag.PrintableLines(err.Error(), "    "))
	}
}

// maxListedTools bounds the tools that a dialog lists.
const maxListedTools = 20

// askTool asks for the name of a tool until a tool has it. The key Tab completes a name. It returns
// [errInputEnd] for an empty name.
func askTool(talk *dialog, tools []engine.Metadata) (engine.Metadata, error) {
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
	}
	talk.say("Call a tool. Ctrl-C returns to the view; Up repeats what you typed.\n")
	listTools(talk, tools)
	if talk.editor != nil {
		talk.editor.complete = func(line string) string { return completed(line, names) }
		defer func() { talk.editor.complete = nil }()
	}
	for {
		name, err := talk.line("Tool:")
		if name = strings.TrimSpace(name); err != nil || name == "" {
			return engine.Metadata{}, cmp.Or(err, errInputEnd)
		}
		if i := slices.Index(names, name); i >= 0 {
			return tools[i], nil
		}
		hint := diag.DidYouMeanLonger(name, names)
		if hint != "" {
			hint = "; " + hint
		}
		talk.say("  no tool %q is served%s\n", name, shown(hint))
		listTools(talk, slices.DeleteFunc(slices.Clone(tools), func(m engine.Metadata) bool {
			return hint != "" || !strings.Contains(strings.ToLower(m.Name), strings.ToLower(name))
		}))
	}
}

// listTools lists tools with the first line of their descriptions.
func listTools(talk *dialog, tools []engine.Metadata) {
	for _, m := range tools[:min(len(tools), maxListedTools)] {
		about := ""
		if m.Description != nil {
			about = "  " + summaryOf(*m.Description)
		}
		talk.say("  %s%s\n", shown(m.Name), shown(about))
	}
	if more := len(tools) - maxListedTools; more > 0 {
		talk.say("  and %d more; a part of a name lists the tools that have it\n", more)
	}
}

// completed returns the longest common prefix of the names that start with typed.
func completed(typed string, names []string) string {
	found, common := false, typed
	for _, name := range names {
		switch {
		case !strings.HasPrefix(name, typed):
		case !found:
			found, common = true, name
		default:
			for !strings.HasPrefix(name, common) {
				common = common[:len(common)-1]
			}
		}
	}
	return strings.ToValidUTF8(common, "")
}

// askArguments asks for each property of an input schema, and returns the object of the answers. An
// empty answer leaves a property out. The user may keep an answer that the schema rejects, to see or to
// record the error.
func askArguments(talk *dialog, input json.RawMessage) (json.RawMessage, error) {
	var object struct {
		Properties json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(input, &object); err != nil {
		return nil, fmt.Errorf("read the input schema: %w", err)
	}
	checked, _ := schema.Compile(input, diag.Range{}, nil) // if it is nil, only the call checks the arguments
	arguments := map[string]json.RawMessage{}
	names, properties := inOrder(object.Properties)
	for i, name := range names {
		var property inputProperty
		_ = json.Unmarshal(properties[i], &property) // a schema may also be true
		required := slices.Contains(object.Required, name)
		about, hint := property.about(required)
		if property.Description != "" {
			about += ": " + property.Description
		}
		talk.say("  %s%s\n", shown(name), shown(about))
		for {
			typed, err := talk.line("  >")
			if err != nil {
				return nil, err
			}
			var value json.RawMessage
			problem := ""
			switch empty := strings.TrimSpace(typed) == ""; {
			case empty && required:
				problem = "it is required"
			case !empty:
				if value, err = argument(typed, property.Type); err != nil {
					talk.say("  not valid JSON: %s\n", err)
					continue
				}
				problem = violationsOf(checked, name, value)
				if problem != "" && hint != "" && !strings.ContainsAny(typed, "[{") {
					problem += "; " + hint
				}
			}
			if problem != "" {
				keep, err := talk.confirm(fmt.Sprintf("  %s. Keep this answer?", shown(problem)))
				if err != nil {
					return nil, err
				}
				if !keep {
					continue
				}
			}
			if value != nil {
				arguments[name] = value
			}
			break
		}
	}
	return json.Marshal(arguments)
}

// inputProperty is the schema of a property that a prompt describes.
type inputProperty struct {
	Type        any
	Description string
	Default     json.RawMessage
	Enum        []json.RawMessage
	Items       *inputProperty
	Properties  json.RawMessage
}

// maxAbout bounds the values of a schema in a prompt, in bytes.
const maxAbout = 200

// about describes a property in parentheses: its type, what Enter does, and how to type a value. hint is
// not empty if a value must be typed as JSON.
func (p *inputProperty) about(required bool) (text, hint string) {
	var facts []string
	kinds := p.kinds()
	if len(kinds) > 0 {
		facts = append(facts, strings.Join(kinds, " or "))
	}
	switch {
	case required:
		facts = append(facts, "required")
	case p.Default != nil && len(p.Default) <= maxAbout:
		facts = append(facts, "optional: Enter takes the default "+string(p.Default))
	case p.Default != nil:
		facts = append(facts, "optional: Enter takes the default")
	default:
		facts = append(facts, "optional: Enter skips it")
	}
	text = strings.Join(facts, ", ")
	if slices.Contains(kinds, "array") || slices.Contains(kinds, "object") {
		hint = "type JSON, such as " + p.example(0, 0)
		text += "; " + hint
	}
	if values := strings.Join(typedTexts(p.Enum), ", "); values != "" && len(values) <= maxAbout {
		text += "; one of " + values
	}
	return " (" + text + ")", hint
}

// kinds returns the JSON types of a property.
func (p *inputProperty) kinds() (kinds []string) {
	switch t := p.Type.(type) {
	case string:
		kinds = []string{t}
	case []any:
		for _, one := range t {
			if kind, ok := one.(string); ok {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

// example returns JSON of the type of a property. Examples with other numbers differ.
func (p *inputProperty) example(number, depth int) string {
	kind, item := "", cmp.Or(p.Items, &inputProperty{})
	for _, one := range p.kinds() {
		if kind == "" || one == "array" || one == "object" {
			kind = one
		}
	}
	switch {
	case kind == "integer", kind == "number":
		return strconv.Itoa(number + 1)
	case kind == "boolean":
		return strconv.FormatBool(number == 0)
	case kind == "array" && depth < 2:
		return "[" + item.example(0, depth+1) + ", " + item.example(1, depth+1) + "]"
	case kind == "array":
		return "[]"
	case kind == "object":
		name, value := "name", inputProperty{}
		if names, schemas := inOrder(p.Properties); len(names) > 0 {
			name = names[0]
			_ = json.Unmarshal(schemas[0], &value)
		}
		if depth >= 2 || len(name) > maxAbout {
			return "{}"
		}
		quoted, _ := json.Marshal(name) // a string always encodes
		return "{" + string(quoted) + ": " + value.example(number, depth+1) + "}"
	}
	return strconv.Quote(string(rune('a' + number)))
}

// typedTexts returns JSON values as a user types them: strings without quotes.
func typedTexts(values []json.RawMessage) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		if json.Unmarshal(value, &texts[i]) != nil || string(value) == "null" {
			texts[i] = string(value)
		}
	}
	return texts
}

// violationsOf says why a schema rejects the value of a property, or returns "".
func violationsOf(s *schema.Schema, name string, value json.RawMessage) string {
	object, err := json.Marshal(map[string]json.RawMessage{name: value})
	if s == nil || err != nil {
		return ""
	}
	at := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return schema.FormatViolations(slices.DeleteFunc(s.Validate(object), func(v schema.Violation) bool {
		return v.Path != at && !strings.HasPrefix(v.Path, at+"/")
	}))
}
