package mcp

import "context"

// method is one JSON-RPC method.
type method struct {
	name string
	eras era
	// early methods are answered before initialize.
	early bool
	// slow methods may take long: they can be cancelled, and do not hold up
	// what follows them on a connection.
	slow bool
	// nameOf is the member of params that the header Mcp-Name mirrors; empty
	// for methods that have none.
	nameOf string
	// serve answers a call. A nil result with a nil fault answers nothing:
	// the client does not wait any more.
	serve func(ctx context.Context, c *request) (*result, *fault)
}

// feature is a family of methods and the capability that declares it. Adding
// one is a file that returns it and a line in [features].
type feature struct {
	// capability is the name and settings is the JSON of what the server
	// declares; name is empty when there is nothing to declare.
	capability, settings string
	// declared says to which clients.
	declared era
	methods  []method
}

func features(withTasks bool) []feature {
	all := []feature{lifecycle(), discovery(), tools(), resources(), prompts(), completions(), logging(), subscriptions()}
	if withTasks {
		all = append(all, tasks())
	}
	return all
}

// assemble joins the features to a method table and the capabilities of either era.
func assemble(features []feature) (methods map[string]*method, capabilities [2][]byte) {
	methods = map[string]*method{}
	old, now := []byte{'{'}, []byte{'{'}
	for _, f := range features {
		for _, m := range f.methods {
			methods[m.name] = &m
		}
		if f.declared&legacy != 0 {
			old = appendValue(old, f.capability, []byte(f.settings))
		}
		if f.declared&modern != 0 {
			now = appendValue(now, f.capability, []byte(f.settings))
		}
	}
	return methods, [2][]byte{append(old, '}'), append(now, '}')}
}

// declares returns the capabilities object for clients of the era.
func (s *Server) declares(e era) []byte {
	if e == modern {
		return s.capabilities[1]
	}
	return s.capabilities[0]
}
