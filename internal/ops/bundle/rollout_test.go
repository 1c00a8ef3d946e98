package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// staged returns a bundle with a rollout.
func staged(t *testing.T, key []byte, serial int64, files fstest.MapFS, percent int, labels map[string]string) []byte {
	t.Helper()
	return pack(t, Manifest{Serial: serial, Rollout: &Rollout{Percent: percent, Labels: labels}}, files, key)
}

// selected returns which of 1,000 appliances a bundle selects.
func selected(t *testing.T, data []byte) map[int]bool {
	t.Helper()
	b, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]bool{}
	for i := range 1000 {
		if b.Manifest.Selects(fmt.Sprintf("appliance-%04d", i), nil) {
			all[i] = true
		}
	}
	return all
}

func TestRollout_growsWithPercentage(t *testing.T) {
	key, _ := newKey(t)
	before := map[int]bool{}
	for i, percent := range []int{1, 10, 25, 50, 90, 100} {
		now := selected(t, staged(t, key, int64(i+1), project("one"), percent, nil))
		for appliance := range before {
			if !now[appliance] {
				t.Errorf("%d %%: appliance %d is no longer selected", percent, appliance)
			}
		}
		if n, want := len(now), 10*percent; n < want-50 || n > want+50 {
			t.Errorf("%d %%: %d of 1000 appliances", percent, n)
		}
		before = now
	}
	if len(before) != 1000 {
		t.Errorf("100 %%: %d of 1000 appliances", len(before))
	}
	one, two := selected(t, staged(t, key, 1, project("one"), 10, nil)), selected(t, staged(t, key, 2, project("two"), 10, nil))
	if maps.Equal(one, two) {
		t.Error("other files select the same appliances")
	}
}

// TestRollout_percentile fixes the documented hash.
func TestRollout_percentile(t *testing.T) {
	m := Manifest{Name: "shop", Files: []File{{Path: "mcpd.hcl", Size: 25, SHA256: "baad5db8ef62a61417d23a09ee2919ddc632efeaedff732e2b0a692b1eff28be"}}}
	var percentiles []uint64
	for _, id := range []string{"kiosk-1", "kiosk-2", "kiosk-3"} {
		percentiles = append(percentiles, m.percentile(id))
	}
	if want := []uint64{73, 79, 81}; !slices.Equal(percentiles, want) {
		t.Errorf("percentiles %v, want %v", percentiles, want)
	}
}

func TestRollout_labels(t *testing.T) {
	m := Manifest{Name: "shop", Rollout: &Rollout{Percent: 100, Labels: map[string]string{"site": "lab", "model": "k2"}}}
	for _, row := range []struct {
		labels map[string]string
		want   bool
	}{
		{nil, false},
		{map[string]string{"site": "lab"}, false},
		{map[string]string{"site": "shop", "model": "k2"}, false},
		{map[string]string{"site": "lab", "model": "k2", "floor": "1"}, true},
	} {
		if got := m.Selects("a", row.labels); got != row.want {
			t.Errorf("%v: selected %t", row.labels, got)
		}
	}
	if text := m.Rollout.String(); text != "100 % with model=k2, site=lab" {
		t.Errorf("text %q", text)
	}
}

// TestFollower_rollout requires that an appliance which is not selected keeps its bundle without
// downloading the other one again, and takes a later stage.
func TestFollower_rollout(t *testing.T) {
	key, public := newKey(t)
	web, dir, engine := newSite(t), t.TempDir(), &server{}
	labels := map[string]string{"site": "shop"}
	newFollower := func() *Follower {
		f := follow(t, web.URL+"/shop.bundle", dir, public, nil)
		f.options.ID, f.options.Labels = "kiosk", func() map[string]string { return labels }
		return f
	}
	f := newFollower()
	take := func() Status {
		t.Helper()
		if _, err := f.take(t.Context(), engine.activate); err != nil {
			t.Fatal(err)
		}
		return f.Status()
	}
	lab := map[string]string{"site": "lab"}
	web.offer(staged(t, key, 1, project("one"), 100, lab))
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatalf("a first bundle is not taken: %v", err)
	}
	two := staged(t, key, 2, project("two"), 100, lab)
	web.offer(two)
	for range 3 {
		if s := take(); s.Serial != 1 || s.Pending != 2 || s.Problem != "" || s.Code != "" {
			t.Fatalf("not selected: %+v", s)
		}
	}
	sent := 0
	web.mu.Lock()
	for _, r := range web.requests {
		if r.Header.Get("If-None-Match") == web.tag {
			sent++
		}
	}
	web.mu.Unlock()
	if sent != 2 {
		t.Errorf("%d requests with the tag of the pending bundle, want 2", sent)
	}
	if _, err := f.folder.disk.read(fileOf(2)); err == nil {
		t.Error("the pending bundle is in the directory")
	}

	web.offer(two[:len(two)-1])
	if _, err := f.take(t.Context(), engine.activate); err == nil || f.Status().Pending != 0 {
		t.Errorf("a damaged bundle: %v, pending %d", err, f.Status().Pending)
	}
	web.offer(two)
	take()
	web.offer(staged(t, key, 3, project("two"), 100, nil))
	if s := take(); s.Serial != 3 || s.Pending != 0 || engine.text != "# two\n" {
		t.Fatalf("the next stage: %+v", s)
	}

	web.offer(staged(t, key, 4, project("four"), 100, lab))
	if s := take(); s.Pending != 4 {
		t.Fatalf("not selected: %+v", s)
	}
	labels = lab // and the operator reloads
	f.clearPending()
	if s := take(); s.Serial != 4 || s.Pending != 0 {
		t.Fatalf("with the label: %+v", s)
	}
	if s := take(); s.Serial != 4 || s.Problem != "" {
		t.Fatalf("unchanged: %+v", s)
	}

	// the serial number of a bundle that was active is taken, that of a pending one is not
	labels = nil
	web.offer(staged(t, key, 4, project("four"), 100, nil))
	if _, err := f.take(t.Context(), engine.activate); err == nil || !strings.Contains(err.Error(), "another bundle with the serial number 4 was active") {
		t.Errorf("serial 4 again for all: %v", err)
	}
	web.offer(staged(t, key, 5, project("five"), 100, lab))
	if s := take(); s.Serial != 4 || s.Pending != 5 {
		t.Fatalf("not selected: %+v", s)
	}

	// an appliance that is not selected does not judge the bundle further
	web.offer(pack(t, Manifest{Serial: 6, MinVersion: "99.0.0", Rollout: &Rollout{Percent: 100, Labels: lab}}, project("six"), key))
	if s := take(); s.Serial != 4 || s.Pending != 6 || s.Problem != "" {
		t.Errorf("a version for others: %+v", s)
	}
	trust := f.options.Trust
	other, otherPublic := newKey(t)
	f.options.Trust = func() ([]byte, error) { return otherPublic, nil }
	web.offer(pack(t, Manifest{Serial: 6, Rollout: &Rollout{Percent: 100, Labels: lab}}, project("six"), key, other))
	for range 2 { // after a download and without one
		if _, err := f.take(t.Context(), engine.activate); err == nil {
			t.Error("a lost trust in the active bundle is not reported")
		}
	}
	f.options.Trust = trust
	web.offer(staged(t, key, 5, project("five"), 100, nil))
	if s := take(); s.Serial != 5 || s.Pending != 0 {
		t.Fatalf("serial 5 for all: %+v", s)
	}

	labels = nil // an active bundle stays after a restart
	f = newFollower()
	again := &server{}
	if err := f.Start(t.Context(), again.activate); err != nil || f.Status().Serial != 5 {
		t.Fatalf("after a restart: %v, serial %d", err, f.Status().Serial)
	}
}

// TestFollower_codes requires a code for each kind of problem.
func TestFollower_codes(t *testing.T) {
	key, public := newKey(t)
	stranger, _ := newKey(t)
	web, engine := newSite(t), &server{}
	web.offer(pack(t, Manifest{Serial: 5}, project("five"), key))
	f := follow(t, web.URL+"/shop.bundle", t.TempDir(), public, nil)
	f.options.Examine = func(_ context.Context, files fs.FS) error {
		text, err := fs.ReadFile(files, "tools.d/a.hcl")
		if strings.Contains(string(text), "closed") {
			return Refuse(errors.New("too many decisions would change"))
		}
		return err
	}
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	good := pack(t, Manifest{Serial: 6}, project("six"), key)
	for _, row := range []struct {
		code string
		data []byte
	}{
		{CodeFormat, good[:100]},
		{CodeSignature, pack(t, Manifest{Serial: 6}, project("six"), stranger)},
		{CodeOrder, pack(t, Manifest{Serial: 4}, project("four"), key)},
		{CodeUnusable, pack(t, Manifest{Serial: 6, MinVersion: "99.0.0"}, project("six"), key)},
		{CodeLoad, pack(t, Manifest{Serial: 6}, project("broken"), key)},
		{CodeDecisions, pack(t, Manifest{Serial: 6}, project("closed"), key)},
	} {
		web.offer(row.data)
		_, err := f.take(t.Context(), engine.activate)
		f.setProblem(err)
		if s := f.Status(); s.Code != row.code || s.Problem == "" || s.Serial != 5 || (len(s.Files) == 1) != (row.code == CodeLoad) {
			t.Errorf("%s: %+v", row.code, s)
		}
	}
	web.Close()
	_, err := f.take(t.Context(), engine.activate)
	f.setProblem(err)
	if s := f.Status(); s.Code != CodeFetch || len(s.Files) != 0 {
		t.Errorf("closed site: %+v", s)
	}
	f.setProblem(nil)
	if s := f.Status(); s.Code != "" || s.Problem != "" {
		t.Errorf("in order again: %+v", s)
	}
}
