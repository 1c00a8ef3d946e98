package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a running server.
type process struct {
	server  server
	mode    mode
	id      int
	started time.Time
	work    string // its directory
	address string // of HTTP
	pipes   pipes

	cmd    *exec.Cmd
	log    *tail
	exited chan error
}

// start starts a server. Over HTTP it waits for the address.
func (s *site) start(v server, m mode, tools int) (*process, error) {
	cmd, work, err := s.command(v, m, tools)
	if err != nil {
		return nil, err
	}
	p := &process{server: v, mode: m, cmd: cmd, work: work, log: &tail{}, exited: make(chan error, 1)}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	var stdout io.ReadCloser
	if m.transport == "stdio" {
		if p.pipes.toServer, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
		if stdout, err = cmd.StdoutPipe(); err != nil {
			return nil, err
		}
		p.pipes.fromServer = stdout
	}
	p.started = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", v.name, err)
	}
	p.id = cmd.Process.Pid
	addresses := make(chan string, 1)
	go p.follow(stderr, addresses)
	if m.transport == "stdio" {
		return p, nil
	}
	select {
	case p.address = <-addresses:
		return p, nil
	case err := <-p.exited:
		return nil, fmt.Errorf("%s exited: %w\n%s", v.name, err, p.log)
	case <-time.After(2 * patience):
		p.stop()
		return nil, fmt.Errorf("%s does not listen\n%s", v.name, p.log)
	}
}

var listening = regexp.MustCompile(`on http://([^ /"]+)/`)

// follow reads the log of a server, and waits for its exit.
func (p *process) follow(log io.Reader, addresses chan<- string) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.log.add(lines.Text())
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			select {
			case addresses <- found[1]:
			default:
			}
		}
	}
	_, _ = io.Copy(io.Discard, log)
	state, err := p.cmd.Process.Wait()
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	p.exited <- err
}

// stop asks a server to exit, kills it if it does not, and removes its files.
func (p *process) stop() {
	defer os.RemoveAll(p.work)
	if p.pipes.toServer != nil {
		_ = p.pipes.toServer.Close()
	} else {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-p.exited:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// dial opens connections for a number of callers.
func (p *process) dial(callers int) (all []connection, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: connect over %s: %w\n%s", p.server.name, p.mode.name, err, p.log)
		}
	}()
	if p.mode.transport == "stdio" {
		lines, err := dialLines(p.pipes, p.mode)
		if err != nil {
			return nil, err
		}
		if callers == 1 {
			return []connection{lines}, nil
		}
		return share(lines, callers), nil
	}
	for range callers {
		var c connection
		var err error
		switch {
		case p.mode.transport == "http" || p.server.name == baseline:
			c, err = dialHTTP(p.address, "/mcp", p.mode)
		case p.mode.transport == "sse":
			c, err = dialEvents(p.address, p.mode)
		case p.mode.transport == "websocket":
			c, err = dialSocket(p.address)
		}
		if err != nil {
			for _, c := range all {
				_ = c.Close()
			}
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// tail keeps the last lines of a log. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines = append(t.lines, line); len(t.lines) > 20 {
		t.lines = t.lines[1:]
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
