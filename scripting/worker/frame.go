package worker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mcpd/mcpd/scripting"
)

const (
	// maxFrame bounds one frame to a process: a call with all of its journal.
	maxFrame = 96 << 20
	// maxAnswer bounds one frame from a process: a result with its content.
	maxAnswer = 24 << 20
)

// maxName bounds the name of a file that a process asks for.
const maxName = 4 << 10

// The kinds of frames. A process is told first what it may have. It
// gets a trial and then, for each file that it
// asks for, the file or why there is none; it ends with survived. Or it gets
// programs, some of them for the one call that comes with each, calls of them, programs to
// forget, answers to host calls, and cancellations, in any order, and sends host calls, the numbers of those that nobody waits for
// any more, and outcomes. It answers a report, which is
// empty, with that of what confines it.
const (
	frameBounds byte = 'm'
	frameReport byte = 'r'

	frameTrial    byte = 't'
	frameImport   byte = 'i'
	frameFile     byte = 'f'
	frameNoFile   byte = 'n'
	frameSurvived byte = 's'

	frameProgram byte = 'p'
	frameOnce    byte = 'q'
	frameForget  byte = 'g'
	frameCall    byte = 'c'
	frameAnswer  byte = 'a'
	frameCancel  byte = 'x'
	frameHost    byte = 'h'
	frameDrop    byte = 'd'
	frameOutcome byte = 'o'
)

// errFrame says that the other side does not keep to the protocol.
var errFrame = errors.New("a frame is out of place")

// trial is a source as it crosses to a process, without what only places need.
type trial struct {
	Name     string             `json:"name"`
	Kind     scripting.Kind     `json:"kind"`
	Language scripting.Language `json:"language"`
	File     string             `json:"file"`
	Body     string             `json:"body"`
	Path     string             `json:"path"`
	Objects  []scripting.Object `json:"objects"`
	Members  []scripting.Member `json:"members,omitempty"`
	Vars     json.RawMessage    `json:"vars,omitempty"`
}

// encodeTrial returns the frame of a source.
func encodeTrial(src scripting.Source) ([]byte, error) {
	content, err := json.Marshal(trial{
		Name: src.Name, Kind: src.Kind, Language: src.Language, File: src.Text.File(), Body: src.Text.Body(),
		Path: src.Path, Objects: src.Objects, Members: src.Members, Vars: src.Vars,
	})
	if err != nil {
		return nil, fmt.Errorf("encode a trial: %w", err)
	}
	return content, nil
}

// writeFrame writes one frame: its kind, its length in four bytes, its content.
func writeFrame(w io.Writer, kind byte, content []byte) error {
	frame := make([]byte, 5, 5+len(content))
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], uint32(len(content)))
	_, err := w.Write(append(frame, content...))
	return err
}

// readFrame reads one frame of at most most bytes.
func readFrame(r io.Reader, most int) (kind byte, content []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if int64(length) > int64(most) {
		return 0, nil, fmt.Errorf("%w: it has %d bytes", errFrame, length)
	}
	content, err = readAll(r, int(length))
	return head[0], content, err
}

// readAll reads so many bytes. It makes room for many of them as they come: who
// only says that they will must not have the memory taken for them.
func readAll(r io.Reader, length int) ([]byte, error) {
	content := make([]byte, min(length, maxRoom))
	_, err := io.ReadFull(r, content)
	for err == nil && len(content) < length {
		read := len(content)
		content = append(content, make([]byte, min(length-read, read))...)
		_, err = io.ReadFull(r, content[read:])
	}
	return content, err
}
