package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"testing"
)

func init() {
	// parrot copies its input to its output.
	programs["parrot"] = func([]string) error {
		_, err := io.Copy(os.Stdout, os.Stdin)
		fmt.Fprint(os.Stderr, "heard")
		return err
	}
}

// child starts one of the programs.
func child(t *testing.T, command []string, argv ...string) *Child {
	t.Helper()
	c, err := Start(command, Program{Path: self(t), Argv: argv, Env: []string{"A=b"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChild_streams(t *testing.T) {
	for name, command := range commands(t) {
		t.Run(name, func(t *testing.T) {
			c := child(t, command, "parrot")
			lines := bufio.NewReader(c.Stdout)
			for _, word := range []string{"one\n", "two\n"} {
				_, _ = io.WriteString(c.Stdin, word)
				if got, err := lines.ReadString('\n'); got != word {
					t.Errorf("output %q, %v", got, err)
				}
			}
			_ = c.Stdin.Close()
			if output, _ := io.ReadAll(c.Stderr); string(output) != "heard" {
				t.Errorf("output at the end %q", output)
			}
			if code, err := c.Wait(); code != 0 || err != nil {
				t.Errorf("exit code %d, %v", code, err)
			}
		})
	}
}

func TestChild_kill(t *testing.T) {
	for name, command := range commands(t) {
		t.Run(name, func(t *testing.T) {
			c := child(t, command, "parrot")
			c.Kill()
			c.Kill()
			<-c.Done()
			if code, err := c.Wait(); code == 0 && err == nil {
				t.Error("the child ended by itself")
			}
		})
	}
}

func TestStart_missingProgram(t *testing.T) {
	for name, command := range commands(t) {
		t.Run(name, func(t *testing.T) {
			c, err := Start(command, Program{Path: "/no/such/program", Argv: []string{"x"}})
			if err == nil {
				_, err = c.Wait()
			}
			if err == nil {
				t.Error("the child runs")
			}
		})
	}
}
