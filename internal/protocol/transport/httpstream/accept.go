package httpstream

import (
	"net/http"
	"strings"
)

// Accepted is which of the two forms of an answer a client takes.
type Accepted struct{ JSON, Events bool }

// AcceptOf reads the Accept header (RFC 9110 section 12.5.1). A client that
// sends none takes anything.
func AcceptOf(r *http.Request) Accepted {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return Accepted{JSON: true, Events: true}
	}
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return Accepted{JSON: true, Events: true} // without the work of parsing
	}
	var a Accepted
	for _, value := range values {
		for kind := range strings.SplitSeq(value, ",") {
			kind, parameters, _ := strings.Cut(kind, ";")
			if refused(parameters) {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*":
				a.JSON, a.Events = true, true
			case "application/json", "application/*":
				a.JSON = true
			case "text/event-stream", "text/*":
				a.Events = true
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
