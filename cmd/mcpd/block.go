package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// tellBlocks prints what the blocks of content are that stand behind a result, and that it
// does not show: those that are no text. What cannot be read is not told.
func tellBlocks(w io.Writer, content json.RawMessage) error {
	var blocks []json.RawMessage
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	for _, encoded := range blocks {
		var b block
		if json.Unmarshal(encoded, &b) != nil || b.Type == "text" {
			continue
		}
		if _, err := fmt.Fprint(w, endLine(b.text())); err != nil {
			return err
		}
	}
	return nil
}
