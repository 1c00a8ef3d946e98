package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/extension"
)

// wrongClock is extensions/postgres of a machine with a wrong clock. Options.Now is the clock of its server, and
// the database still has its own, as without Options.Now.
type wrongClock struct{ extension.PostgreSQL }

func (w wrongClock) OpenDatabase(d state.Database, o state.Options, patience time.Duration) (state.Store, error) {
	o.Now = nil
	return w.PostgreSQL.OpenDatabase(d, o, patience)
}

// skewedReplicas are three servers that share their state. Their clocks are an hour slow, right, and an hour
// fast.
type skewedReplicas struct {
	*testing.T
	urls [3]string

	mu      sync.Mutex
	effects map[string]int // by the id of the call
}

func newSkewedReplicas(t *testing.T) *skewedReplicas {
	t.Helper()
	r := &skewedReplicas{T: t, effects: map[string]int{}}
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.effects[strings.TrimPrefix(request.URL.Path, "/")]++
	}))
	t.Cleanup(api.Close)
	database := shared.Database(t, os.Getenv("MCPD_NEED_POSTGRES"), "")
	tools := fmt.Sprintf(skewedTools, strings.TrimPrefix(api.URL, "http://"))
	for i := range r.urls {
		r.urls[i] = newReplica(t, database, tools, engine.Options{
			Extensions: []engine.Extension{wrongClock{postgres.New().(extension.PostgreSQL)}},
			Now:        func() time.Time { return time.Now().Add(time.Duration(i-1) * time.Hour) },
		})
	}
	return r
}

const skewedTools = `
tool "asks" {
  timeout     = "20s"
  ask_timeout = "5m"
  input "id" { type = string }
  allow {
    ask { elicit = true }
    http "api" {
      hosts            = [%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = <<JS
    await elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } });
    await http.api.post("http://%[1]s/" + input.id);
    return input.id;
  JS
}

tool "asks_briefly" {
  ask_timeout = "1s"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    await elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } });
    return "late";
  JS
}

tool "approved" {
  timeout = "20s"
  input "id" { type = string }
  allow {
    http "api" {
      hosts            = [%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = "await http.api.post('http://%[1]s/' + input.id); return input.id;"
}

policy "needs_approval" {
  tools             = ["approved"]
  requires_approval = "true"
  reason            = "It has an effect"
}

tool "job" {
  task        = "required"
  task_ttl    = "10m"
  ask_timeout = "5m"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    return "hello " + (await elicit({ message: "who?", schema })).content.name;
  JS
}

tool "note" {
  input "key" { type = string }
  input "ttl" { type = integer }
  allow {
    kv "notes" {
      scope = "server"
      ttl   = "24h"
    }
  }
  run = <<JS
    if (input.ttl === 0) return String(await kv.notes.get(input.key));
    return String(await kv.notes.put(input.key, "kept", { ttl: input.ttl }));
  JS
}

tool "scarce" { run = "return 'done';" }

limit "scarce" {
  tools = ["scarce"]
  rate  = "6/h"
}
`

// skewedAnswer is the response to a call.
type skewedAnswer struct {
	Result struct {
		ResultType, RequestState string
		InputRequests            map[string]json.RawMessage
		Content                  []struct{ Text string }
		IsError                  bool
	}
	Error *struct{ Message string }
}

// text returns the text of a result, or the message of an error.
func (a *skewedAnswer) text() string {
	switch {
	case a.Error != nil:
		return a.Error.Message
	case len(a.Result.Content) > 0:
		return a.Result.Content[0].Text
	}
	return a.Result.ResultType
}

// call calls a tool at a server, with more params, each after a comma.
func (r *skewedReplicas) call(i int, tool, arguments, more string) (a skewedAnswer) {
	r.Helper()
	decode(r.T, taskClient{r.T, r.urls[i]}.send("tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s%s`, tool, arguments, more)), &a)
	return a
}

// ask makes a call that asks, and returns the params of its answer.
func (r *skewedReplicas) ask(i int, tool, arguments string) string {
	r.Helper()
	a := r.call(i, tool, arguments, "")
	for key := range a.Result.InputRequests {
		return fmt.Sprintf(`,"inputResponses":{%q:{"action":"accept","content":{}}},"requestState":%q`, key, a.Result.RequestState)
	}
	r.Fatalf("%s did not ask: %s", tool, a.text())
	return ""
}

// get returns the value of a key at a server, or "undefined".
func (r *skewedReplicas) get(i int, key string) string {
	r.Helper()
	a := r.call(i, "note", fmt.Sprintf(`{"key":%q,"ttl":0}`, key), "")
	if text := a.text(); text != "kept" && text != "undefined" {
		r.Fatalf("get: %s", text)
	}
	return a.text()
}

func (r *skewedReplicas) put(i int, key string, ttl time.Duration) {
	r.Helper()
	if a := r.call(i, "note", fmt.Sprintf(`{"key":%q,"ttl":%d}`, key, ttl.Milliseconds()), ""); a.text() != "true" {
		r.Fatalf("put: %s", a.text())
	}
}

// TestReplicas_clockSkew: the clock of the database decides, whatever the clocks of the servers are.
func TestReplicas_clockSkew(t *testing.T) {
	t.Parallel()
	r := newSkewedReplicas(t)
	t.Run("asks and approvals", func(t *testing.T) {
		for _, tool := range []string{"asks", "approved"} {
			for from := range r.urls {
				id := fmt.Sprintf("%s-%d", tool, from)
				arguments := fmt.Sprintf(`{"id":%q}`, id)
				answer := r.ask(from, tool, arguments)
				var all sync.WaitGroup
				for to := range r.urls {
					all.Go(func() {
						if a := r.call(to, tool, arguments, answer); a.text() != id {
							t.Errorf("%s asked by server %d and answered at %d: %s", tool, from, to, a.text())
						}
					})
				}
				all.Wait()
				r.mu.Lock()
				if n := r.effects[id]; n != 1 {
					t.Errorf("%s asked by server %d had %d effects", tool, from, n)
				}
				r.mu.Unlock()
			}
		}
	})
	t.Run("expired asks and values", func(t *testing.T) {
		var answers [3]string
		for i := range r.urls {
			answers[i] = r.ask(i, "asks_briefly", "{}")
			r.put(i, fmt.Sprintf("long-%d", i), 30*time.Minute)
			r.put(i, fmt.Sprintf("brief-%d", i), 2*time.Second) // longer than the asks
		}
		for from, answer := range answers {
			for at := range r.urls {
				if text := r.get(at, fmt.Sprintf("long-%d", from)); text != "kept" {
					t.Errorf("server %d does not have the value of server %d: %s", at, from, text)
				}
				for r.get(at, fmt.Sprintf("brief-%d", from)) == "kept" {
					time.Sleep(20 * time.Millisecond) // nothing signals the expiry
				}
			}
			for at := range r.urls {
				if a := r.call(at, "asks_briefly", "{}", answer); !strings.Contains(a.text(), "expired") {
					t.Errorf("server %d accepts an expired answer to server %d: %s", at, from, a.text())
				}
			}
		}
	})
	t.Run("tasks", func(t *testing.T) {
		for from := range r.urls {
			at := func(i int) taskClient { return taskClient{t, r.urls[(from+i)%3]} }
			made := at(0).call("job", "{}")
			asked := at(1).until(made.ID, "input_required")
			at(2).answer(asked, `{"name":"Ann"}`)
			if got := at(1).until(made.ID, "completed", "failed"); !strings.Contains(string(got.Result), "hello Ann") {
				t.Errorf("task of server %d: %+v", from, got)
			}
		}
	})
	t.Run("limits", func(t *testing.T) {
		var got []string
		for n := range 9 {
			a := r.call(n%3, "scarce", "{}", "")
			got = append(got, strings.SplitN(a.text(), ";", 2)[0])
		}
		want := append(slices.Repeat([]string{"done"}, 6), slices.Repeat([]string{"over the limit of 6 calls an hour"}, 3)...)
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
}

// unreadable is extensions/postgres with a store whose tasks cannot be read at times.
type unreadable struct {
	extension.PostgreSQL
	away  *atomic.Bool
	reads chan error
}

func (u unreadable) OpenDatabase(d state.Database, o state.Options, patience time.Duration) (state.Store, error) {
	s, err := u.PostgreSQL.OpenDatabase(d, o, patience)
	if err != nil {
		return nil, err
	}
	return unreadableStore{s.(state.Shared), u}, nil
}

type unreadableStore struct {
	state.Shared
	unreadable
}

func (s unreadableStore) Task(owner state.Owner, id string) (t state.Task, err error) {
	if s.away.Load() {
		err = state.ErrUnavailable
	} else {
		t, err = s.Shared.Task(owner, id)
	}
	select {
	case s.reads <- err:
	default:
	}
	return t, err
}

// TestReplicas_taskUnread: a task ends at one server while another one, where a client listens to it, cannot read
// it. The client hears of it later.
func TestReplicas_taskUnread(t *testing.T) {
	t.Parallel()
	hook, started, ended := running()
	database := shared.Database(t, os.Getenv("MCPD_NEED_POSTGRES"), "")
	u := unreadable{postgres.New().(extension.PostgreSQL), &atomic.Bool{}, make(chan error, 100)}
	runner := taskClient{t, newReplica(t, database, endlessTask, engine.Options{Hooks: []engine.Hook{hook}})}
	follower := taskClient{t, newReplica(t, database, endlessTask, engine.Options{Extensions: []engine.Extension{u}})}
	made := runner.call("stuck", "{}")
	<-started
	var got task
	var err error
	notified, heard := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(heard)
		got, err = follower.listen(made.ID, func(now task) bool {
			notified <- struct{}{}
			return now.Status == "cancelled"
		})
	}()
	select {
	case <-notified: // of the present state
	case <-heard:
		t.Fatalf("got %+v, %v", got, err)
	}
	for len(u.reads) > 0 {
		if err := <-u.reads; err != nil {
			t.Fatal(err)
		}
	}
	u.away.Store(true)
	runner.send("tasks/cancel", made.ID, fmt.Sprintf(`"taskId":%q`, made.ID))
	<-ended
	for unread := error(nil); unread == nil; {
		select {
		case unread = <-u.reads:
		case <-heard:
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	u.away.Store(false)
	if <-heard; err != nil {
		t.Error(err)
	}
}
