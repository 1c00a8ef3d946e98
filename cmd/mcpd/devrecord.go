package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// recordCall leaves the view and lets the user record a call as a test, until the server has ended.
func (d *devSession) recordCall(ended <-chan struct{}) {
	d.screen.suspend()
	done := make(chan struct{})
	go func() { // it may wait for the terminal until the end of the process
		defer close(done)
		talk := newDialog(d.env)
		if err := d.recordDialog(talk); err != nil && !errors.Is(err, errOver) && err.Error() != "" {
			talk.say("mcpd: %s\n", sanitize(err.Error()))
		}
		_, _ = talk.line("\nPress Enter to return.")
	}()
	select {
	case <-done:
	case <-ended:
		return
	}
	if err := d.screen.open(); err != nil {
		d.quit()
	}
}

// recordDialog asks for a call and does what mcpd call --record does with the files on disk.
func (d *devSession) recordDialog(talk *dialog) error {
	d.mu.Lock()
	server := d.server
	d.mu.Unlock()
	if server == nil || server.Snapshot() == nil {
		return errors.New("nothing is served yet: correct the files first")
	}
	talk.say("Record a call as a test.\n")
	name, err := talk.line("Tool:")
	if err != nil || name == "" {
		return err
	}
	tool := server.Snapshot().Tool(name)
	if tool == nil {
		return fmt.Errorf("no tool %q is served", name)
	}
	arguments, err := askArguments(talk, tool.Metadata().InputSchema)
	if err != nil {
		return err
	}
	file := filepath.Join(d.flags.files.tools, "recorded.hcl")
	typed, err := talk.line(fmt.Sprintf("File [%s]:", shown(file)))
	if err != nil {
		return err
	}
	if typed != "" {
		file = typed
	}
	f := callFlags{files: d.flags.files, args: string(arguments), record: file}
	f.files.serving = false
	f.log = logging{level: "warn", format: "text", levelSet: func() bool { return false }}
	if err := f.checkRecord(d.env); err != nil {
		return err
	}
	return callFiles(context.Background(), d.env, &f, name, nil)
}

// askArguments asks for each property of an input schema, and returns the object of the answers. An
// empty answer leaves a property out.
func askArguments(talk *dialog, schema json.RawMessage) (json.RawMessage, error) {
	var object struct {
		Properties json.RawMessage
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, fmt.Errorf("read the input schema: %w", err)
	}
	arguments := map[string]json.RawMessage{}
	names, properties := inOrder(object.Properties)
	for i, name := range names {
		var property struct {
			Type        any
			Description string
		}
		_ = json.Unmarshal(properties[i], &property) // a schema may also be true
		about := ""
		if kind, ok := property.Type.(string); ok {
			about = " (" + kind + ")"
		}
		if property.Description != "" {
			about += ": " + property.Description
		}
		talk.say("  %s%s\n", shown(name), shown(about))
		for {
			typed, err := talk.line("  >")
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(typed) == "" {
				break
			}
			value, err := argument(typed, property.Type)
			if err == nil {
				arguments[name] = value
				break
			}
			talk.say("  not valid JSON: %s\n", err)
		}
	}
	return json.Marshal(arguments)
}
