package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// read gets a value from its source.
func (s *Store) read(ctx context.Context, d Def) (string, error) {
	value, source, err := s.fetch(ctx, d)
	value = strings.TrimRight(value, "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", source, err)
	case value == "":
		return "", fmt.Errorf("%s: the value is empty", source)
	case len(value) > MaxValue:
		return "", fmt.Errorf("%s: the value is longer than %d bytes", source, MaxValue)
	}
	return value, nil
}

func (s *Store) fetch(ctx context.Context, d Def) (value, source string, err error) {
	var raw []byte
	switch {
	case d.Env != "":
		value, ok := s.options.LookupEnv(d.Env)
		if !ok {
			err = errors.New("it is not set")
		}
		return value, "environment variable " + d.Env, err
	case d.File != "":
		raw, err = s.options.ReadFile(d.File)
		return string(raw), "file " + d.File, cause(err)
	case len(d.Command) > 0:
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		raw, err = s.options.RunCommand(ctx, d.Command, s.variables())
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return string(raw), "command " + d.Command[0], err
	}
	return "", "definition", errors.New("it names no env, file, command or oauth")
}

// variables returns the names of the variables of which secrets are read.
func (s *Store) variables() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, e := range s.entries {
		if e.def.Env != "" {
			names = append(names, e.def.Env)
		}
	}
	return names
}

// readFile reads as much of a file as a value may hold, and a little more.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, MaxValue+2*int64(len("\r\n"))))
}

// cause drops the path that an error of the file system repeats.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
