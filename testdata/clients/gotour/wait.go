package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"
)

// take returns the next n messages of the server.
func take(ctx context.Context, from <-chan string, n int) ([]string, error) {
	var got []string
	for len(got) < n {
		select {
		case next := <-from:
			got = append(got, next)
		case <-ctx.Done():
			return nil, fmt.Errorf("got %q, and then nothing: %w", got, ctx.Err())
		}
	}
	return got, nil
}

// soon reports whether a message arrives before the next retry.
func soon(ctx context.Context, from <-chan string) (bool, error) {
	select {
	case <-from:
		return true, nil
	case <-time.After(500 * time.Millisecond):
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// drain drops all received messages.
func drain(from <-chan string) {
	for len(from) > 0 {
		<-from
	}
}

// said waits until the server has logged a text.
func (t *tour) said(ctx context.Context, what string) error {
	for {
		log, err := os.ReadFile(filepath.Join(t.at.home, "log"))
		if err != nil {
			return err
		}
		if strings.Contains(string(log), what) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server did not log %q", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func equal[T any](what string, got, want T) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: got %v, want %v", what, got, want)
}

func contains(what, got, want string) error {
	if strings.Contains(got, want) {
		return nil
	}
	return fmt.Errorf("%s: got %q, want %q in it", what, got, want)
}
