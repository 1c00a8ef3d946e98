package diag

import (
	"encoding/json"
	"errors"
)

// wireText is a text as it crosses to another process.
type wireText struct {
	File string `json:"file"`
	Body string `json:"body"`
	// Runs are an offset of the body and its line, column and byte, each.
	Runs [][4]int `json:"runs"`
}

// MarshalJSON encodes the text with all that it knows of its places.
func (t Text) MarshalJSON() ([]byte, error) {
	wire := wireText{File: t.file, Body: t.body}
	for _, r := range t.runs {
		wire.Runs = append(wire.Runs, [4]int{r.at, r.pos.Line, r.pos.Column, r.pos.Byte})
	}
	return json.Marshal(wire)
}

// UnmarshalJSON decodes what [Text.MarshalJSON] has encoded.
func (t *Text) UnmarshalJSON(data []byte) error {
	var wire wireText
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	read := Text{file: wire.File, body: wire.Body}
	for i, r := range wire.Runs {
		if r[0] < 0 || r[0] > len(wire.Body) || i > 0 && r[0] < wire.Runs[i-1][0] || i == 0 && r[0] != 0 {
			return errors.New("a text whose places are out of order")
		}
		read.runs = append(read.runs, run{r[0], Pos{Line: r[1], Column: r[2], Byte: r[3]}})
	}
	*t = read
	return nil
}
