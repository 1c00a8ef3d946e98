package streamable

import (
	"net/http"
	"strings"
)

// accepted is which of the two forms of an answer a client takes.
type accepted struct{ json, events bool }

// acceptOf reads the Accept header (RFC 9110 section 12.5.1). A client that
// sends none takes anything.
func acceptOf(r *http.Request) accepted {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return accepted{json: true, events: true}
	}
	var a accepted
	for _, value := range values {
		for kind := range strings.SplitSeq(value, ",") {
			kind, parameters, _ := strings.Cut(kind, ";")
			if refused(parameters) {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*":
				a.json, a.events = true, true
			case "application/json", "application/*":
				a.json = true
			case "text/event-stream", "text/*":
				a.events = true
			}
		}
	}
	return a
}

// refused reports whether the parameters of a media type give it the weight 0.
func refused(parameters string) bool {
	weight, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
	return ok && strings.Trim(weight, "0.") == "" && strings.HasPrefix(weight, "0")
}
