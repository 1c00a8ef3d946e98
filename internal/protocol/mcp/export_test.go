package mcp

// Methods returns the method table of a server that has tasks: whether each method
// is one of legacy revisions, and of modern ones.
func Methods() map[string][2]bool {
	table, _ := assemble(features(true))
	methods := map[string][2]bool{}
	for name, m := range table {
		methods[name] = [2]bool{m.eras&legacy != 0, m.eras&modern != 0}
	}
	return methods
}
