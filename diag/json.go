package diag

import "encoding/json"

// MarshalJSON encodes the diagnostic for machines: severity, code, summary and
// detail always, the place when it is known, notes when there are any. Lines
// and columns count from 1; columns count code points.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	out := struct {
		Severity string `json:"severity"`
		Code     string `json:"code"`
		Summary  string `json:"summary"`
		Detail   string `json:"detail"`
		jsonRange
		Notes []jsonNote `json:"notes,omitempty"`
	}{
		Severity: d.Severity.String(), Code: d.Code, Summary: d.Summary, Detail: d.Detail,
		jsonRange: newJSONRange(d.Range),
	}
	for _, n := range d.Notes {
		out.Notes = append(out.Notes, jsonNote{n.Message, newJSONRange(n.Range)})
	}
	return json.Marshal(out)
}

// MarshalJSON encodes the list as an array, also when it is empty.
func (l List) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Diagnostic(l))
}

type jsonPos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

type jsonRange struct {
	File  string   `json:"file,omitempty"`
	Start *jsonPos `json:"start,omitempty"`
	End   *jsonPos `json:"end,omitempty"`
}

type jsonNote struct {
	Message string `json:"message"`
	jsonRange
}

func newJSONRange(r Range) jsonRange {
	out := jsonRange{File: r.File}
	if r.Start.Line > 0 {
		out.Start = &jsonPos{r.Start.Line, r.Start.Column}
		out.End = &jsonPos{r.End.Line, r.End.Column}
	}
	return out
}
