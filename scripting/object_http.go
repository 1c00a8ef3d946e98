package scripting

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/compiler"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// makeClient returns http.NAME: get, post, put, patch and delete(url, options), and request(method,
// url, options).
func (r *execution) makeClient(grant string) *goja.Object {
	o := r.Runtime.NewObject()
	for _, name := range compiler.HTTPMethods() {
		r.Method(o, name, func(c goja.FunctionCall) goja.Value {
			return r.fetch(grant, strings.ToUpper(name), c.Argument(0), c.Argument(1))
		})
	}
	r.Method(o, "request", func(c goja.FunctionCall) goja.Value {
		method := strings.ToUpper(c.Argument(0).String())
		return r.fetch(grant, method, c.Argument(1), c.Argument(2))
	})
	return o
}

// httpRequest is the payload of the operation http.request.
type httpRequest struct {
	Grant     string            `json:"grant"`
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers,omitempty"`
	Body      *string           `json:"body,omitempty"`
	Body64    *string           `json:"body64,omitempty"`
	TimeoutMS int64             `json:"timeout_ms,omitempty"`
	// Consented is set after the user has approved the request.
	Consented bool `json:"consented,omitempty"`
	// signal abandons the request; may be nil.
	signal *abortSignal
	// consentRounds counts the questions to the user about this request.
	consentRounds int
}

// maxConsentRounds limits the questions to the user about one request: for the approval, and a few
// for proofs of it.
const maxConsentRounds = 6

type httpResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Body64  string            `json:"body64"`
	URL     string            `json:"url"`
}

// fetch sends a request, and returns the promise of its response.
func (r *execution) fetch(grant, method string, url, options goja.Value) goja.Value {
	if builtins.IsNothing(url) {
		panic(r.TypeError("http." + grant + ": the url is missing"))
	}
	request := httpRequest{Grant: grant, Method: method, URL: url.String()}
	r.readOptions(&request, options)
	return r.sendRequest(request, r.callStack())
}

// sendRequest sends a request, and sends it again after the user has responded to the questions of
// the host.
func (r *execution) sendRequest(request httpRequest, stack []goja.StackFrame) goja.Value {
	return r.callHostUntil(request.signal, "http.request", mustJSON(request), func(a hostResponse) (v, thrown goja.Value) {
		switch {
		case a.refusal != nil && a.refusal.Code == Consent && len(a.refusal.Details) > 0 && request.consentRounds < maxConsentRounds:
			return r.consent(request, a.refusal, stack), nil
		case a.refusal != nil && a.refusal.Code == Consent:
			return nil, r.hostError(&HostError{Code: Denied, Message: a.refusal.Message}, stack)
		case a.refusal != nil:
			return nil, r.hostError(a.refusal, stack)
		}
		response, refused := r.response(a.data)
		if refused != nil {
			return nil, r.hostError(refused, stack)
		}
		return response, nil
	})
}

// consent asks the user for the approval that the host requires. It returns the promise of the
// response to the repeated request.
func (r *execution) consent(request httpRequest, refused *HostError, stack []goja.StackFrame) goja.Value {
	question := keyedRequest{r.nextKey("consent"), &askRequest{method: methodElicit, params: refused.Details}}
	return r.send("http."+request.Grant, []keyedRequest{question}, func(replies []inputResponse, _ []goja.StackFrame) (v, thrown goja.Value) {
		if denied := replies[0].denied; denied != "" {
			return nil, r.newCallError("AskDenied", declinedMessage(methodElicit, denied), denied, stack)
		}
		request.Consented = true
		request.consentRounds++
		return r.sendRequest(request, stack), nil
	})
}

// readOptions reads { headers, body, json, timeout, signal }. timeout is in milliseconds.
func (r *execution) readOptions(request *httpRequest, v goja.Value) {
	what := "http." + request.Grant
	r.EachOption(what, v, []string{"headers", "json", "body", "timeout", "signal"}, func(name string, value goja.Value) {
		switch name {
		case "headers":
			r.readHeaders(request, value)
		case "json":
			r.setJSON(request, value)
		case "body":
			r.setBody(request, value)
		case "timeout":
			ms, ok := jsvalue.Finite(value)
			if !ok || ms <= 0 {
				panic(r.TypeError(what + ": timeout must be a number of milliseconds"))
			}
			request.TimeoutMS = int64(min(ms, float64(maxDelay/time.Millisecond)))
		case "signal":
			var ok bool
			if request.signal, ok = r.signalOf(value); !ok {
				panic(r.TypeError(what + ": signal must be that of an AbortController, or AbortSignal.timeout(milliseconds)"))
			}
		}
	})
}

func (r *execution) readHeaders(request *httpRequest, v goja.Value) {
	o, ok := v.(*goja.Object)
	if !ok {
		panic(r.TypeError("http." + request.Grant + ": headers must be an object"))
	}
	for _, name := range o.Keys() {
		r.Proceed()
		r.setHeader(request, name, builtins.TextOf(o.Get(name)))
	}
}

func (r *execution) setHeader(request *httpRequest, name, value string) {
	if request.Headers == nil {
		request.Headers = map[string]string{}
	}
	request.Headers[strings.ToLower(name)] = value
}

func (r *execution) setJSON(request *httpRequest, v goja.Value) {
	out, err := r.JSON(v)
	if err != nil {
		panic(r.Throwable(err))
	}
	body := string(out)
	request.Body = &body
	if _, set := request.Headers["content-type"]; !set {
		r.setHeader(request, "content-type", "application/json")
	}
}

func (r *execution) setBody(request *httpRequest, v goja.Value) {
	if data, ok := r.BytesOf(v); ok {
		encoded := base64.StdEncoding.EncodeToString(data)
		request.Body64 = &encoded
		return
	}
	if r.IsSearchParams(v) {
		r.setHeader(request, "content-type", "application/x-www-form-urlencoded;charset=UTF-8")
	} else if _, object := v.(*goja.Object); object {
		panic(r.TypeError("http." + request.Grant + ": body must be a string or bytes; use json for objects"))
	}
	body := v.String()
	request.Body = &body
}

// response returns the response object of a script: status, ok, url, headers (with lower-case
// names), text(), json() and bytes().
func (r *execution) response(data []byte) (*goja.Object, *HostError) {
	var answer httpResponse
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, &HostError{Code: Unavailable, Message: errUnreadable.Error()}
	}
	body, err := textOrBase64(answer.Body, answer.Body64)
	if err != nil {
		return nil, &HostError{Code: Unavailable, Message: errUnreadable.Error()}
	}
	o, headers := r.Runtime.NewObject(), r.Runtime.NewObject()
	for _, name := range slices.Sorted(maps.Keys(answer.Headers)) {
		_ = jsvalue.Define(headers, name, r.Runtime.ToValue(answer.Headers[name]))
	}
	_ = o.Set("status", answer.Status)
	_ = o.Set("ok", answer.Status >= 200 && answer.Status < 300)
	_ = o.Set("url", answer.URL)
	_ = o.Set("headers", headers)
	r.Method(o, "text", func(goja.FunctionCall) goja.Value { return r.Runtime.ToValue(bodyText(body)) })
	r.Method(o, "bytes", func(goja.FunctionCall) goja.Value { return r.NewBytes([]byte(body)) })
	r.Method(o, "json", func(goja.FunctionCall) goja.Value {
		v, err := r.Decode(bodyText(body))
		if err != nil {
			panic(r.SyntaxError("the response is not JSON: " + err.Error()))
		}
		return v
	})
	return o, nil
}

// bodyText decodes a body as UTF-8, regardless of its declared charset.
func bodyText(body string) string {
	return strings.TrimPrefix(builtins.ValidUTF8(body), builtins.ByteOrderMark)
}
