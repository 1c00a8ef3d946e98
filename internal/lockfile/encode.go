package lockfile

// version is the first line of a lock file but for comments.
const version = "mcpd.lock 1"

// head tells who reads a lock file what it is.
const head = `# The tools of upstream servers as they were accepted; mcpd serves them in no other form.
# mcpd writes this file: "mcpd lock diff" shows what differs, "mcpd lock accept" takes it in.
# Review its changes like those of code: models read these texts, and obey them.
` + version + "\n"

// The words that lines of a lock file begin with.
const (
	upstreamWord = "upstream "
	toolWord     = "tool "
	hashWord     = "sha256 "
)

// Encode returns the file of a lock. Equal locks have equal files.
func (l *Lock) Encode() []byte {
	file := []byte(head)
	for _, a := range l.upstreams {
		file = append(file, "\n"+upstreamWord+quoted(a.upstream)+"\n"...)
		for _, t := range a.tools {
			file = append(file, "\n"+toolWord+label(t.upstream, t.name)+"\n"+hashWord+t.Hash()+"\n"...)
			for _, line := range sheetOf(t) {
				file = append(append(file, line...), '\n')
			}
		}
	}
	return file
}

// label returns the name of a tool as files, diffs and errors have it.
func label(upstream, name string) string { return quoted(upstream) + " " + quoted(name) }
