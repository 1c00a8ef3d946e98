package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/scripting"
)

// Answer answers a request as if content were what the file holds, or for list
// and stat the JSON of a mock: names and objects like those of an entry, or some
// of type, size and modified. It is what tests get in the place of a disk.
func (f *Folder) Answer(q *Request, content []byte) ([]byte, error) {
	answer, err := f.pretend(q, content)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, fault(scripting.Unavailable, q.given, "the mock cannot be told")
	}
	return encoded, nil
}

func (f *Folder) pretend(q *Request, content []byte) (any, error) {
	switch q.Method {
	case "list":
		return pretendList(q, content)
	case "stat":
		d := described{}
		if err := json.Unmarshal(content, &d); err != nil {
			return nil, fault(scripting.Unavailable, q.given, "the mock of stat must be an object with some of type, size and modified")
		}
		d.Type = cmp.Or(d.Type, typeFile)
		return d, nil
	case "readText", "readBytes", "lines":
		var lines []string
		if q.Method == "lines" && json.Unmarshal(content, &lines) == nil {
			content = nil
			for _, line := range lines {
				content = append(append(content, line...), '\n')
			}
		}
		return f.read(context.Background(), bytes.NewReader(content), int64(len(content)), q, func(b []byte) []byte { return b })
	}
	return struct{}{}, nil
}

func pretendList(q *Request, content []byte) (any, error) {
	var items []json.RawMessage
	err := json.Unmarshal(content, &items)
	entries := []entry{}
	for _, item := range items {
		e := entry{Type: typeFile}
		if json.Unmarshal(item, &e.Name) != nil {
			err = cmp.Or(err, json.Unmarshal(item, &e))
		}
		entries = append(entries, e)
	}
	if err != nil {
		return nil, fault(scripting.Unavailable, q.given, "the mock of list must be a list of names, or of { name, type }")
	}
	return listed{entries}, nil
}
