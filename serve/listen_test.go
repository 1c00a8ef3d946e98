package serve_test

import (
	"net"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

func TestAnAddressThatIsTakenIsToldOnce(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, err := engine.New(engine.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	err = serve.New(s, serve.Options{Address: taken.Addr().String()}).Run(t.Context())
	if err == nil || strings.Count(err.Error(), "listen") != 1 {
		t.Errorf("got %v", err)
	}
}
