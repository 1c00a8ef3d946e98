package scripting

import (
	"cmp"
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// execRequest is the payload of the operation exec.run.
type execRequest struct {
	Grant  string            `json:"grant"`
	Params map[string]string `json:"params"`
}

// execResponse is the response. Each output has one of the two forms.
type execResponse struct {
	Code     *int   `json:"code"`
	Stdout   string `json:"stdout"`
	Stdout64 string `json:"stdout64"`
	Stderr   string `json:"stderr"`
	Stderr64 string `json:"stderr64"`
}

// execute runs a program, and returns the promise of its result.
func (r *execution) execute(grant string, params goja.Value) goja.Value {
	request := execRequest{Grant: grant, Params: r.execParams(grant, params)}
	return r.callAndRead("exec.run", mustJSON(request), (*execution).execResult)
}

// execParams reads the values of parameters: strings and whole numbers.
func (r *execution) execParams(grant string, v goja.Value) map[string]string {
	params := map[string]string{}
	if builtins.IsNothing(v) {
		return params
	}
	o, ok := v.(*goja.Object)
	if !ok || jsvalue.KindOf(o) != jsvalue.Plain {
		panic(r.TypeError("exec." + grant + ": the parameters must be an object, such as { name: value }"))
	}
	for _, name := range o.Keys() {
		r.Proceed()
		params[name] = r.execParam(grant, name, o.Get(name))
	}
	return params
}

func (r *execution) execParam(grant, name string, v goja.Value) string {
	if text, ok := v.(goja.String); ok {
		if jsvalue.HasLoneSurrogate(text) {
			panic(r.TypeError("exec." + grant + ": " + name + " contains half of a character, like truncated text"))
		}
		return text.String()
	}
	n, ok := jsvalue.Whole(v)
	if !ok {
		panic(r.TypeError("exec." + grant + ": " + name + " must be a string or a whole number"))
	}
	return builtins.Index(n)
}

// execResult returns the result object for an exited program: code, stdout, stderr, and bytes(),
// which returns stdout.
func (r *execution) execResult(data []byte) (goja.Value, error) {
	var response execResponse
	if json.Unmarshal(data, &response) != nil || response.Code == nil {
		return nil, errUnreadable
	}
	stdout, err1 := textOrBase64(response.Stdout, response.Stdout64)
	stderr, err2 := textOrBase64(response.Stderr, response.Stderr64)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	o := r.Runtime.NewObject()
	_ = o.Set("code", *response.Code)
	_ = o.Set("stdout", bodyText(stdout))
	_ = o.Set("stderr", bodyText(stderr))
	r.Method(o, "bytes", func(goja.FunctionCall) goja.Value { return r.NewBytes([]byte(stdout)) })
	return o, nil
}
