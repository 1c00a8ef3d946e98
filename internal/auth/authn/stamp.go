package authn

import (
	"io/fs"
	"os"
	"time"
)

// fileRace is how long after it was written a file is read again, whatever the
// disk says of it: its clock is coarse, and a second write may leave no trace.
const fileRace = 3 * time.Second

// unchanged reports whether a file is surely the one that was seen before. Nil
// stands for none.
func unchanged(seen, now fs.FileInfo, at time.Time) bool {
	return seen != nil && now != nil && os.SameFile(seen, now) && seen.Size() == now.Size() && seen.Mode() == now.Mode() &&
		seen.ModTime().Equal(now.ModTime()) && at.Sub(now.ModTime()) > fileRace
}
