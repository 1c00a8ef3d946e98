package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
)

// maxTyped is the maximum length of an input, in bytes.
const maxTyped = 1 << 20

// dialog asks the user at the terminal. It prints untrusted text, so it escapes control
// characters and indents each line.
type dialog struct {
	in  *bufio.Reader // nil with an editor
	out io.Writer
	dir string // the working directory
	// editor reads lines from a terminal without echo; nil if the terminal has echo.
	editor *lineEditor
}

func newDialog(e env) *dialog {
	return &dialog{in: bufio.NewReader(e.stdin), out: e.stderr, dir: e.resolve(".")}
}

// errInputEnd reports the end of the input.
var errInputEnd = errors.New("the input has ended")

// ask responds to one request. The end of the input cancels the request.
func (d *dialog) ask(r call.AskRequest) (json.RawMessage, error) {
	var answer json.RawMessage
	var err error
	d.dropTyped()
	switch r.Method {
	case methodElicit:
		answer, err = d.elicit(r)
	case methodSample:
		answer, err = d.sample(r)
	case methodRoots:
		answer, err = d.roots(r)
	default:
		err = errInputEnd
	}
	if errors.Is(err, errInputEnd) {
		d.say("\n")
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	return answer, err
}

func (d *dialog) say(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

// shown returns untrusted text for display. It replaces format characters, such as
// characters of zero width: the user must see all that the answer is about.
func shown(text string) string {
	return diag.PrintableLines(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return utf8.RuneError
		}
		return r
	}, text), "  ")
}

func (d *dialog) line(prompt string) (string, error) {
	if d.editor == nil {
		d.say("%s ", prompt)
		return d.read()
	}
	d.editor.SetPrompt(prompt + " ")
	defer d.editor.SetPrompt("")
	return d.read()
}

func (d *dialog) read() (string, error) {
	if d.editor != nil {
		return d.editor.line()
	}
	var typed []byte
	for {
		piece, err := d.in.ReadSlice('\n')
		if typed = append(typed, piece...); len(typed) > maxTyped {
			return "", findingsError("the input is longer than %d bytes", maxTyped)
		}
		switch {
		case err == nil:
			return strings.TrimRight(string(typed), "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(typed) > 0:
			return string(typed), nil
		default:
			return "", errInputEnd
		}
	}
}

// dropTyped forgets what the user has typed before a question of consequence. It has no effect on a
// terminal with echo.
func (d *dialog) dropTyped() {
	if d.editor != nil {
		d.editor.in.drop()
	}
}

func (d *dialog) confirm(question string) (bool, error) {
	for {
		d.dropTyped()
		typed, err := d.line(question + " [y/n]")
		if err != nil {
			return false, err
		}
		if yes, err := yesOrNo(strings.TrimSpace(typed)); err == nil {
			return yes, nil
		}
	}
}

// confirmChange asks the user to confirm a change, and returns an error unless the answer is y. Without
// a terminal, advice says how to confirm.
func confirmChange(e env, question, advice string) error {
	if !e.stdinIsTerminal {
		return usageError("%s, as standard input is not a terminal", advice)
	}
	fmt.Fprintf(e.stderr, "%s [y/N] ", question)
	if answer, _ := bufio.NewReader(e.stdin).ReadString('\n'); strings.TrimSpace(strings.ToLower(answer)) != "y" {
		return findingsError("nothing was changed")
	}
	return nil
}

// elicit lets the user fill in a form or open a page.
func (d *dialog) elicit(r call.AskRequest) (json.RawMessage, error) {
	form, err := formOf(r.Params)
	if err != nil {
		return nil, err
	}
	d.say("The call asks for input (%s):\n  %s\n", shown(r.Key), shown(form.message))
	question, content := "Do you agree?", map[string]any{}
	switch {
	case form.mode == "url":
		d.say("  Open this page only if you trust it: %s\n", shown(form.url))
		question = "Have you done so?"
	case len(form.fields) > 0:
		question = "Send this answer?"
		for _, f := range form.fields {
			if err := d.field(&f, content); err != nil {
				return nil, err
			}
		}
	}
	yes, err := d.confirm(question)
	switch {
	case err != nil:
		return nil, err
	case !yes:
		return json.RawMessage(declined), nil
	case form.mode == "url":
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	return json.Marshal(map[string]any{"action": "accept", "content": content})
}

// field asks for a form field until the value is valid, or empty for an optional field.
func (d *dialog) field(f *field, content map[string]any) error {
	about := f.Type
	if f.Format != "" {
		about += ", " + f.Format
	}
	if f.Type == "array" {
		about += " with commas between the values"
	}
	switch {
	case f.Default != nil:
		about += ", Enter takes the default"
	case !f.required:
		about += ", optional: Enter skips it"
	}
	d.say("  %s (%s)", shown(f.name), shown(about))
	for _, text := range []string{f.Title, f.Description} {
		if text != "" {
			d.say(": %s", shown(text))
		}
	}
	d.say("\n")
	for i, c := range f.choices() {
		d.say("    %d  %s  %s\n", i+1, shown(c.Const), shown(c.Title))
	}
	prompt := "  >"
	if f.Default != nil {
		prompt = fmt.Sprintf("  [%s] >", shown(string(f.Default)))
	}
	for {
		typed, err := d.line(prompt)
		if err != nil {
			return err
		}
		switch {
		case typed == "" && f.Default != nil:
			content[f.name] = f.Default
			return nil
		case typed == "" && !f.required:
			return nil
		case typed == "" && f.Type != "string":
			d.say("  a value is required\n")
			continue
		}
		value, err := f.value(typed)
		if err == nil {
			content[f.name] = value
			return nil
		}
		d.say("  %s\n", err)
	}
}

// sample lets the user answer for a model.
func (d *dialog) sample(r call.AskRequest) (json.RawMessage, error) {
	var params struct {
		SystemPrompt string
		Messages     []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(r.Params, &params); err != nil {
		return nil, fmt.Errorf("read input request: %w", err)
	}
	d.say("The call asks a model (%s):\n", shown(r.Key))
	if params.SystemPrompt != "" {
		d.say("  system: %s\n", shown(params.SystemPrompt))
	}
	for _, m := range params.Messages {
		d.say("  %s: %s\n", shown(m.Role), shown(messageText(m.Content)))
	}
	d.say("Paste an answer and end it with a line that holds only a dot. A dot alone declines.\n")
	var lines []string
	for {
		line, err := d.read()
		switch {
		case errors.Is(err, errInputEnd) && lines != nil:
		case err != nil:
			return nil, err
		case line != ".":
			lines = append(lines, line)
			continue
		}
		if text := strings.Join(lines, "\n"); strings.TrimSpace(text) != "" {
			return sampled(text), nil
		}
		return json.RawMessage(declined), nil
	}
}

// messageText returns the text of a message for a model, or its JSON.
func messageText(content json.RawMessage) string {
	var block struct {
		Type string
		Text string
	}
	if json.Unmarshal(content, &block) == nil && block.Type == "text" {
		return block.Text
	}
	const most = 2000
	if len(content) > most {
		return strings.ToValidUTF8(string(content[:most]), "") + "…"
	}
	return string(content)
}

// roots offers the working directory as a root.
func (d *dialog) roots(r call.AskRequest) (json.RawMessage, error) {
	folder, err := filepath.Abs(d.dir)
	if err != nil {
		return nil, fmt.Errorf("find working directory: %w", err)
	}
	d.say("The call asks for the roots, the directories that it may use (%s).\n", shown(r.Key))
	yes, err := d.confirm(fmt.Sprintf("Share the working directory, %s?", shown(folder)))
	if err != nil {
		return nil, err
	}
	if !yes {
		return json.RawMessage(declined), nil
	}
	uri := (&url.URL{Scheme: "file", Path: filepath.ToSlash(folder)}).String()
	return rootsOf([]any{map[string]any{"uri": uri, "name": filepath.Base(folder)}})
}
