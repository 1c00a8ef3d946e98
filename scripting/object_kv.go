package scripting

import (
	"encoding/json"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// kvRequest is the payload of the operations kv.*; each uses some of its fields.
type kvRequest struct {
	Grant    string          `json:"grant"`
	Key      *string         `json:"key,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Expected json.RawMessage `json:"expected,omitempty"`
	TTL      *int64          `json:"ttl_ms,omitempty"`
	IfAbsent bool            `json:"if_absent,omitempty"`
	Prefix   string          `json:"prefix,omitempty"`
	Limit    int             `json:"limit,omitempty"`
	After    string          `json:"after,omitempty"`
	By       *int64          `json:"by,omitempty"`
}

// kvResponse is the response; each operation uses one of its fields.
type kvResponse struct {
	Value json.RawMessage `json:"value"`
	Done  bool            `json:"done"`
	Keys  []string        `json:"keys"`
}

func (r *execution) makeKVStore(grant string) *goja.Object {
	o, object := r.Runtime.NewObject(), "kv."+grant
	// Keys must be strings: other values are not converted.
	text := func(what string, v goja.Value) string {
		text, ok := v.(goja.String)
		if !ok || jsvalue.HasLoneSurrogate(text) {
			panic(r.TypeError(object + ": " + what + " must be a string of whole characters"))
		}
		return text.String()
	}
	integer := func(what string, v goja.Value) int64 {
		n, ok := jsvalue.Whole(v)
		if !ok {
			panic(r.TypeError(object + ": " + what + " must be a whole number"))
		}
		return n
	}
	keyed := func(name string, fill func(*kvRequest, goja.FunctionCall), read func(*execution, []byte) (goja.Value, error)) {
		r.Method(o, name, func(c goja.FunctionCall) goja.Value {
			key := text("the key", c.Argument(0))
			request := kvRequest{Grant: grant, Key: &key}
			if fill != nil {
				fill(&request, c)
			}
			return r.callAndRead("kv."+name, request.encoded(), read)
		})
	}
	keyed("get", nil, (*execution).kvValue)
	keyed("delete", nil, (*execution).kvDone)
	keyed("put", func(request *kvRequest, c goja.FunctionCall) {
		request.Value = r.kvEncode(object, "the value", c.Argument(1))
		r.EachOption(object, c.Argument(2), []string{"ttl", "ifAbsent"}, func(name string, v goja.Value) {
			if name == "ifAbsent" {
				request.IfAbsent = v.ToBoolean()
				return
			}
			ms, ok := jsvalue.Finite(v)
			if !ok || ms < 1 {
				panic(r.TypeError(object + ": ttl must be a number of milliseconds"))
			}
			ttl := int64(min(ms, float64(100*365*24*time.Hour/time.Millisecond)))
			request.TTL = &ttl
		})
	}, (*execution).kvDone)
	keyed("cas", func(request *kvRequest, c goja.FunctionCall) {
		if !goja.IsUndefined(c.Argument(1)) { // undefined means no value
			request.Expected = r.kvEncode(object, "what is expected", c.Argument(1))
		}
		request.Value = r.kvEncode(object, "the value", c.Argument(2))
	}, (*execution).kvDone)
	keyed("incr", func(request *kvRequest, c goja.FunctionCall) {
		if v := c.Argument(1); !goja.IsUndefined(v) {
			by := integer("what is added", v)
			request.By = &by
		}
	}, (*execution).kvValue)
	r.Method(o, "list", func(c goja.FunctionCall) goja.Value {
		request := kvRequest{Grant: grant}
		if prefix := c.Argument(0); !builtins.IsNothing(prefix) {
			request.Prefix = text("the prefix", prefix)
		}
		r.EachOption(object, c.Argument(1), []string{"limit", "after"}, func(name string, v goja.Value) {
			if name == "after" {
				request.After = text("after", v)
			} else if request.Limit = int(integer("limit", v)); request.Limit < 1 {
				panic(r.TypeError(object + ": limit must be at least 1"))
			}
		})
		return r.callAndRead("kv.list", request.encoded(), (*execution).kvKeys)
	})
	return o
}

// kvEncode returns a value as JSON. Lone surrogates are an error: hosts accept only UTF-8.
func (r *execution) kvEncode(object, what string, v goja.Value) json.RawMessage {
	out, err := r.JSON(v)
	if err != nil {
		panic(r.Throwable(err))
	}
	if out == nil {
		panic(r.TypeError(object + ": " + what + " must be a JSON value; use null, or delete the key"))
	}
	if hasSurrogateEscape(out) {
		panic(r.TypeError(object + ": " + what + " contains half of a character, like truncated text; keep whole characters"))
	}
	return out
}

// hasSurrogateEscape reports whether JSON of an encoder contains a lone surrogate. The encoder
// escapes no other letter.
func hasSurrogateEscape(text []byte) bool {
	for i := 0; i+2 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; text[i] == 'u' && text[i+1] == 'd' {
			return true
		}
	}
	return false
}

// encoded returns the payload. Values keep their own JSON.
func (k kvRequest) encoded() []byte {
	out, _ := jsontext.Marshal(k) // was encoded before, so there is no error
	return out
}

// kvValue returns the value of a key; undefined if there is none.
func (r *execution) kvValue(data []byte) (goja.Value, error) {
	var a kvResponse
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, err
	}
	if a.Value == nil {
		return goja.Undefined(), nil
	}
	return r.Decode(string(a.Value))
}

func (r *execution) kvDone(data []byte) (goja.Value, error) {
	var a kvResponse
	err := json.Unmarshal(data, &a)
	return r.Runtime.ToValue(a.Done), err
}

func (r *execution) kvKeys(data []byte) (goja.Value, error) {
	var a kvResponse
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, err
	}
	keys := make([]any, len(a.Keys))
	for i, key := range a.Keys {
		keys[i] = key
	}
	return r.Runtime.NewArray(keys...), nil
}
