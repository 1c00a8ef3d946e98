package deployment

import (
	"fmt"
	"io/fs"

	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/compose"
)

// Tools returns the files of the tools folder by their paths in it, but for those
// that are hidden. It reads no more than ConfigMaps of Kubernetes hold.
func Tools(fsys fs.FS) (map[string][]byte, error) {
	listed, err := loader.New(fsys, ".").List(".")
	if err != nil {
		return nil, fmt.Errorf("read the tools: %w", err)
	}
	files, total := map[string][]byte{}, int64(0)
	for _, f := range listed {
		if total += f.Size; total > compose.MaxTools {
			return nil, fmt.Errorf("read the tools: all files together are larger than %d MiB, which is what ConfigMaps are written for", compose.MaxTools>>20)
		}
		if files[f.Name], err = fs.ReadFile(fsys, f.Name); err != nil {
			return nil, fmt.Errorf("read the tools: %w", err)
		}
	}
	return files, nil
}
