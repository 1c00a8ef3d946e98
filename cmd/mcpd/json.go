package main

import (
	"bytes"
	"encoding/json"
	"io"
)

// printJSON prints a value for machines, as all verbs do: people look at it, too, in
// terminals, which nothing in it may steer (see [seen]).
func printJSON(w io.Writer, value any) error {
	text, err := indentedJSON(value, "")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// indentedJSON returns a value as printJSON prints it, with the prefix at the beginning of
// each line but the first.
func indentedJSON(value any, prefix string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(seen{&text})
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
