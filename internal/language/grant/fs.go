package grant

// FS lets a script use the files below one folder, as the object fs.NAME.
type FS struct {
	Name string `json:"name"`
	// Root is the folder as the file that grants it says: absolute, or relative
	// when that file is not on the disk and nothing can be below it.
	Root string `json:"root"`
	// Relative says that the file names the folder from where it stands itself.
	Relative bool `json:"-"`
	// Real is the absolute path of the folder without links, as it was when the
	// grant was judged. Empty means that there is no folder.
	Real string `json:"real,omitempty"`
	// Write lets the script write and remove files, too.
	Write bool `json:"write,omitempty"`
	// MaxFile bounds one file that is read or written, and MaxTotal all that one
	// call reads and writes, in bytes; 0 means the broker's default.
	MaxFile  int64 `json:"max_file,omitempty"`
	MaxTotal int64 `json:"max_total,omitempty"`
}

// The bounds of an [FS] that does not say.
const (
	DefaultMaxFile  = 1 << 20
	DefaultMaxTotal = 10 << 20
)

// Bounds returns what one file, and what one call, may come to.
func (g FS) Bounds() (file, total int64) {
	file, total = g.MaxFile, g.MaxTotal
	if total <= 0 {
		total = max(DefaultMaxTotal, file)
	}
	if file <= 0 {
		file = min(DefaultMaxFile, total)
	}
	return file, total
}
