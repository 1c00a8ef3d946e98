package stdio

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRefuse_answersUntilInitialize(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"initialize": {
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n",
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no \"log\""}}` + "\n",
		},
		"modern client with fallback": {
			`{"jsonrpc":"2.0","id":"a","method":"server/discover","params":{}}` + "\n" +
				`{"jsonrpc":"2.0","method":"notifications/cancelled"}` + "\n\n" + `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}` + "\n",
			`{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"no \"log\""}}` + "\n" +
				`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no \"log\""}}` + "\n",
		},
		"batch": {
			`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"ping"}]` + "\n",
			`[{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no \"log\""}},{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no \"log\""}}]` + "\n",
		},
		"no line end": {
			`{"jsonrpc":"2.0","id":1,"method":"initialize"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no \"log\""}}` + "\n",
		},
		"nothing": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Refuse(t.Context(), strings.NewReader(c.in), &out, `no "log"`); err != nil {
				t.Error(err)
			}
			if out.String() != c.want {
				t.Errorf("got\n%swant\n%s", out.String(), c.want)
			}
		})
	}
}

func TestRefuse_hostileText(t *testing.T) {
	in := strings.Repeat("[", 4<<20) + "\n" + strings.Repeat("x", 5<<20) + "\n" + `{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n"
	var out bytes.Buffer
	if err := Refuse(t.Context(), strings.NewReader(in), &out, "why"); err != nil {
		t.Error(err)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 || !strings.Contains(lines[1], `"why"`) {
		t.Errorf("got %.300s", out.String())
	}
}

func TestRefuse_timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, other := io.Pipe()
		defer other.Close()
		started := time.Now()
		if err := Refuse(context.Background(), in, io.Discard, "why"); err == nil || time.Since(started) != firstRequestTimeout {
			t.Errorf("after %v: %v", time.Since(started), err)
		}
		_ = in.Close()
	})
}
