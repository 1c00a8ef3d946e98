package scripting

import (
	"github.com/dop251/goja"
)

// params writes the params of a request as JSON, within the bounds of an ask.
// What cannot be written is the script's mistake.
type params struct {
	r    *run
	what string
	e    *encoder
	// last is what the last value was written as.
	last []byte
}

func (r *run) newParams(what string) *params {
	p := &params{r: r, what: what, e: newEncoder(maxAskBytes, maxAskDepth, r.stopped)}
	p.e.out = append(p.e.out, '{')
	return p
}

// end closes the object and returns it.
func (p *params) end() []byte {
	p.e.out = append(p.e.out, '}')
	return p.e.out
}

// value writes a member.
func (p *params) value(name string, v goja.Value) {
	p.name(name)
	p.json(name, v)
}

func (p *params) name(name string) {
	if p.e.out[len(p.e.out)-1] != '{' {
		p.e.out = append(p.e.out, ',')
	}
	p.e.quote(name)
	p.e.out = append(p.e.out, ':')
}

func (p *params) json(name string, v goja.Value) {
	start := len(p.e.out)
	wrote, err := p.e.encode(v)
	switch {
	case err != nil:
		panic(p.r.typeError(p.what + ": " + name + ": " + err.Error()))
	case !wrote:
		panic(p.r.typeError(p.what + ": " + name + " cannot be written as JSON"))
	}
	p.last = p.e.out[start:]
}

// object writes a member that is an object of a known shape.
func (p *params) object(name string, s shape, v goja.Value) {
	found := p.r.members(s, v)
	p.name(name)
	p.e.out = append(p.e.out, '{')
	for _, m := range s.members {
		if value := found[m.name]; value != nil {
			p.value(m.name, value)
		}
	}
	p.e.out = append(p.e.out, '}')
}

// list writes a member that is an array, each item of which item writes.
func (p *params) list(name string, length int, item func(i int)) {
	p.name(name)
	p.e.out = append(p.e.out, '[')
	for i := range length {
		if i > 0 {
			p.e.out = append(p.e.out, ',')
		}
		item(i)
	}
	p.e.out = append(p.e.out, ']')
}

// message writes a message to a model.
func (p *params) message(role, content goja.Value) {
	p.e.out = append(p.e.out, '{')
	p.value("role", role)
	if _, text := content.(goja.String); text {
		p.name("content")
		p.e.out = append(p.e.out, '{')
		p.value("type", p.r.rt.ToValue("text"))
		p.value("text", content)
		p.e.out = append(p.e.out, '}')
	} else {
		p.value("content", content)
	}
	p.e.out = append(p.e.out, '}')
}
