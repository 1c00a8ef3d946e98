package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFollower_refuses offers bad bundles to a follower that serves bundle 7, each over HTTP. No
// bundle may be activated, and a follower that starts again without the site must serve bundle 7.
func TestFollower_refuses(t *testing.T) {
	key, public := newKey(t)
	second, secondPublic := newKey(t)
	stranger, _ := newKey(t)
	trust := trustOf(t, 2, "shop", public, secondPublic)
	keys := [][]byte{key, second}
	dir := t.TempDir()
	web := newSite(t)
	serving := pack(t, Manifest{Serial: 7, Expires: today.Add(time.Hour)}, project("seven"), keys...)
	web.offer(serving)
	engine := &server{}
	f := follow(t, web.URL+"/shop.bundle", dir, trust, nil)
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	forms := badBundles(t, keys, stranger)
	if len(forms) < 50 {
		t.Fatalf("only %d forms of bad bundles", len(forms))
	}
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		web.offer(forms[name])
		_, err := f.take(t.Context(), engine.activate)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		t.Logf("%s: %v", name, err)
		if _, err := f.take(t.Context(), engine.activate); err == nil {
			t.Errorf("%s: accepted the second time", name)
		}
	}
	if engine.activations != 1 || f.Status().Serial != 7 {
		t.Fatalf("%d activations, serving %d", engine.activations, f.Status().Serial)
	}
	web.Close()
	again := &server{}
	f = follow(t, web.URL+"/shop.bundle", dir, trust, nil)
	if err := f.Start(t.Context(), again.activate); err != nil || f.Status().Serial != 7 || again.text != "# seven\n" {
		t.Fatalf("after a restart: %v, serial %d", err, f.Status().Serial)
	}
	t.Logf("%d forms", len(forms))
}

// badBundles returns bundles that a follower with bundle 7, for which two keys must sign, refuses.
func badBundles(t *testing.T, keys [][]byte, stranger []byte) map[string][]byte {
	good := pack(t, Manifest{Serial: 8, Expires: today.Add(time.Hour)}, project("eight"), keys...)
	forms := map[string][]byte{}

	flip := func(at int) []byte {
		data := bytes.Clone(good)
		data[at] ^= 1
		return data
	}
	list := bytes.Index(good, []byte(signaturesEntry))
	config := bytes.Index(good, []byte("mcpd.hcl\x00"))
	forms["changed manifest"] = flip(bytes.Index(good, []byte(`"serial": 8`)) + len(`"serial": `))
	forms["changed digest"] = flip(bytes.Index(good, []byte(`"sha256": "`)) + len(`"sha256": "`))
	forms["changed signature"] = flip(list + 512 + 200)
	forms["changed file"] = flip(bytes.Index(good, []byte("# eight")))
	forms["changed config"] = flip(config + 512)
	forms["changed name of a file"] = flip(config)
	forms["changed mode"] = flip(config + 104)
	forms["changed padding"] = flip(config + 512 + 200)
	forms["changed end"] = flip(len(good) - 3)

	for name, end := range map[string]int{
		"nothing": 0, "one byte": 1, "half a header": 256, "a header": 512, "half a manifest": 700, "no signatures": list, "half the signatures": list + 600,
		"no files": config, "half a file": config + 515, "no end": len(good) - 1024, "half an end": len(good) - 512, "all but a byte": len(good) - 1,
	} {
		forms["cut to "+name] = good[:end]
	}
	forms["a byte behind"] = append(bytes.Clone(good), 0)
	forms["a block behind"] = append(bytes.Clone(good), make([]byte, 512)...)
	forms["another bundle behind"] = append(bytes.Clone(good), good...)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(good)
	_ = w.Close()
	forms["compressed"] = zipped.Bytes()
	forms["web page"] = []byte("<html>not found</html>")
	forms["zeros"] = make([]byte, 4096)
	forms["too large"] = make([]byte, MaxSize+1)

	form := func(name string, serial int64, change func(d *draft)) {
		d := newDraft(t, serial, keys...)
		change(d)
		forms[name] = d.bytes()
	}
	form("no signature", 8, func(d *draft) { d.keys = nil })
	form("below the threshold", 8, func(d *draft) { d.keys = keys[:1] })
	form("one key twice", 8, func(d *draft) { d.keys = [][]byte{keys[0], keys[0]} })
	form("unknown key", 8, func(d *draft) { d.keys = [][]byte{keys[0], stranger} })
	form("signature of another manifest", 8, func(d *draft) { d.signed = []byte("{}") })
	form("too many signatures", 8, func(d *draft) { d.keys = slices.Repeat(keys, 20) })
	signature := func(name string, make func(d *draft, text []byte) string) {
		d := newDraft(t, 8, keys...)
		d.bytes()
		b, err := Read(d.bytes())
		if err != nil {
			t.Fatal(err)
		}
		d.list = []string{d.sign(keys[0], b.manifest, signatureType), make(d, b.manifest)}
		forms[name] = d.bytes()
	}
	signature("signature for another purpose", func(d *draft, text []byte) string { return d.sign(keys[1], text, "JWT") })
	signature("signature without algorithm", func(d *draft, text []byte) string { return "eyJhbGciOiJub25lIn0.." })
	signature("attached signature", func(d *draft, text []byte) string {
		return strings.Replace(d.sign(keys[1], text, signatureType), "..", ".e30.", 1)
	})
	signature("key ID of another key", func(d *draft, text []byte) string {
		head, _, _ := strings.Cut(d.sign(keys[1], text, signatureType), "..")
		_, mark, _ := strings.Cut(d.sign(stranger, text, signatureType), "..")
		return head + ".." + mark
	})
	signature("long signature", func(d *draft, text []byte) string { return strings.Repeat("a", maxSignature+1) })
	signature("no JWS", func(d *draft, text []byte) string { return "." })

	form("lower serial", 6, func(d *draft) {})
	form("same serial with other files", 7, func(d *draft) {})
	form("serial 0", 0, func(d *draft) {})
	form("negative serial", -8, func(d *draft) {})
	form("huge serial", 1<<53, func(d *draft) {})
	form("serial with a fraction", 8, func(d *draft) { d.manifest["serial"] = 8.5 })
	form("other name", 8, func(d *draft) { d.manifest["name"] = "depot" })
	form("other format", 8, func(d *draft) { d.manifest["format"] = "mcpd-bundle/2" })
	form("unknown member", 8, func(d *draft) { d.manifest["stage"] = 5 })
	form("rollout without a percentage", 8, func(d *draft) { d.manifest["rollout"] = map[string]any{} })
	form("rollout to nobody", 8, func(d *draft) { d.manifest["rollout"] = map[string]any{"percent": 0} })
	form("rollout to too many", 8, func(d *draft) { d.manifest["rollout"] = map[string]any{"percent": 101} })
	for name, text := range map[string]string{
		"negative": "-1", "text": `"10"`, "fraction": "9.5", "exponent": "1e1", "too large for an integer": "1" + strings.Repeat("0", 40),
	} {
		form("rollout to a "+name+" percentage", 8, func(d *draft) { d.text = rolloutText(d, `{"percent":`+text+`}`) })
	}
	form("rollout to a percentage that is not a number", 8, func(d *draft) {
		d.text = bytes.Replace(rolloutText(d, `{"percent":12345}`), []byte("12345"), []byte("NaN"), 1)
	})
	form("rollout of another form", 8, func(d *draft) { d.text = rolloutText(d, `10`) })
	form("rollout of null", 8, func(d *draft) { d.text = rolloutText(d, `null`) })
	form("rollout with an unknown member", 8, func(d *draft) { d.text = rolloutText(d, `{"percent":5,"until":1}`) })
	form("rollout with thousands of labels", 8, func(d *draft) {
		labels := map[string]any{}
		for i := range 5000 {
			labels[fmt.Sprintf("label-%04d", i)] = "x"
		}
		d.manifest["rollout"] = map[string]any{"percent": 5, "labels": labels}
	})
	form("rollout with a long label", 8, func(d *draft) {
		d.manifest["rollout"] = map[string]any{"percent": 5, "labels": map[string]any{"site": strings.Repeat("x", 65)}}
	})
	form("rollout with a label twice", 8, func(d *draft) { d.text = rolloutText(d, `{"percent":5,"labels":{"a":"x","a":"y"}}`) })
	form("rollout with an empty label", 8, func(d *draft) {
		d.manifest["rollout"] = map[string]any{"percent": 5, "labels": map[string]any{"site": ""}}
	})
	form("rollout with no list of labels", 8, func(d *draft) { d.text = rolloutText(d, `{"percent":5,"labels":{}}`) })
	form("expired", 8, func(d *draft) { d.manifest["expires"] = today.Add(-time.Second) })
	form("expires at this moment", 8, func(d *draft) { d.manifest["expires"] = today })
	form("expires before it is created", 8, func(d *draft) { d.manifest["expires"] = today.Add(-time.Hour) })
	form("newer mcpd", 8, func(d *draft) { d.manifest["min_version"] = "1.2.4" })
	form("strange version", 8, func(d *draft) { d.manifest["min_version"] = "latest" })
	form("control character in the version", 8, func(d *draft) { d.manifest["min_version"] = "1.2.3-\x1b[2J" })
	form("long version", 8, func(d *draft) { d.manifest["min_version"] = "1.2.3-" + strings.Repeat("a", maxVersion) })
	form("no list of files", 8, func(d *draft) { d.manifest["files"] = nil })
	form("no config", 8, func(d *draft) { d.entries = d.entries[1:] })
	form("no members", 8, func(d *draft) { d.text = []byte(`{"format": "mcpd-bundle/1"}`) })
	form("member twice", 8, func(d *draft) { d.text = []byte(`{"format": "mcpd-bundle/1", "name": "a", "name": "shop"}`) })
	form("nested manifest", 8, func(d *draft) { d.text = []byte(strings.Repeat("[", 1<<20)) })
	form("many empty files", 8, func(d *draft) {
		d.text = []byte(`{"format": "mcpd-bundle/1", "files": [` + strings.Repeat("{},", 1<<20) + `{}]}`)
	})
	form("large manifest", 8, func(d *draft) { d.manifest["name"] = strings.Repeat("a", 5<<20) })
	form("too many files", 8, func(d *draft) {
		for i := range maxFiles {
			d.entries = append(d.entries, file(fmt.Sprintf("tools.d/b%05d.hcl", i), ""))
		}
	})

	list1 := func(d *draft) []File {
		d.bytes()
		return slices.Clone(d.manifest["files"].([]File))
	}
	form("file missing", 8, func(d *draft) { list1(d); d.entries = d.entries[:1] })
	form("file not listed", 8, func(d *draft) { list1(d); d.entries = append(d.entries, file("tools.d/b.hcl", "")) })
	form("file twice", 8, func(d *draft) { d.entries = append(d.entries, d.entries[1]) })
	form("other order", 8, func(d *draft) { slices.Reverse(d.entries) })
	form("order of entries", 8, func(d *draft) { list1(d); slices.Reverse(d.entries) })
	form("wrong size", 8, func(d *draft) {
		files := list1(d)
		files[1].Size++
		d.manifest["files"] = files
	})
	form("wrong digest", 8, func(d *draft) {
		files := list1(d)
		files[1].SHA256 = strings.Repeat("0", 64)
		d.manifest["files"] = files
	})
	form("digest in capitals", 8, func(d *draft) {
		files := list1(d)
		files[1].SHA256 = strings.ToUpper(files[1].SHA256)
		d.manifest["files"] = files
	})
	for name, path := range map[string]string{
		"absolute path": "/etc/passwd", "parent": "tools.d/../../etc/passwd", "dot": "tools.d/./b.hcl", "backslash": `tools.d/..\..\b.hcl`, "hidden file": "tools.d/.b.hcl",
		"file elsewhere": "zz.hcl", "control character": "tools.d/b\n.hcl", "space": "tools.d/b .hcl", "long path": "tools.d/" + strings.Repeat("a/", 60) + strings.Repeat("b", 90),
		"directory of a file": "tools.d/a.hcl/b.hcl", "empty part": "tools.d//b.hcl", "state file": "mcpd.db",
	} {
		form(name, 8, func(d *draft) {
			d.entries = append(d.entries, file(path, "x"))
			slices.SortFunc(d.entries, func(a, b entry) int { return strings.Compare(a.head.Name, b.head.Name) })
		})
	}
	head := func(name string, change func(h *tar.Header)) {
		form(name, 8, func(d *draft) {
			list1(d)
			if change(&d.entries[1].head); d.entries[1].head.Size == 0 {
				d.entries[1].body = nil
			}
		})
	}
	head("symbolic link", func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0 })
	head("hard link", func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeLink, "mcpd.hcl", 0 })
	head("directory", func(h *tar.Header) { h.Typeflag, h.Name, h.Size = tar.TypeDir, "tools.d/a.hcl/", 0 })
	head("device", func(h *tar.Header) { h.Typeflag, h.Size = tar.TypeChar, 0 })
	head("pipe", func(h *tar.Header) { h.Typeflag, h.Size = tar.TypeFifo, 0 })
	head("executable", func(h *tar.Header) { h.Mode = 0o755 })
	head("owner", func(h *tar.Header) { h.Uid = 1000 })
	head("time", func(h *tar.Header) { h.ModTime = today })
	head("PAX header", func(h *tar.Header) { h.Format, h.PAXRecords = tar.FormatPAX, map[string]string{"comment": "x"} })
	head("GNU header", func(h *tar.Header) { h.Format = tar.FormatGNU })
	large := bytes.Clone(good) // a header whose size is 1 GiB, with its checksum
	copy(large[config+124:], "10000000000")
	copy(large[config+148:], "        ")
	sum := 0
	for _, b := range large[config : config+512] {
		sum += int(b)
	}
	copy(large[config+148:], fmt.Sprintf("%06o\x00 ", sum))
	forms["entry larger than the bundle"] = large
	forms["sparse file"] = sparse("tools.d/a.hcl", 1<<40)
	forms["sparse manifest"] = sparse(manifestEntry, MaxSize)
	form("negative size", 8, func(d *draft) {
		files := list1(d)
		files[1].Size = -1
		d.manifest["files"] = files
	})
	form("sizes over the limit", 8, func(d *draft) {
		files := list1(d)
		files[0].Size, files[1].Size = MaxSize/2+1, MaxSize/2
		d.manifest["files"] = files
	})
	form("file whose test fails", 8, func(d *draft) { d.entries[1] = file("tools.d/a.hcl", "# broken\n") })
	return forms
}

// rolloutText returns the manifest of a draft with a rollout as written.
func rolloutText(d *draft, rollout string) []byte {
	d.manifest["rollout"] = json.RawMessage(rollout)
	d.bytes()
	return d.encoded()
}

// sparse returns a tar file with one entry that has a size and no content, in the PAX format 1.0 of
// GNU tar.
func sparse(name string, size int64) []byte {
	block := func(name string, kind byte, body string) []byte {
		b := make([]byte, 512+(len(body)+511)/512*512)
		copy(b, name)
		copy(b[100:], "0000644\x000000000\x000000000\x00")
		copy(b[124:], fmt.Sprintf("%011o\x0000000000000\x00        %c", len(body), kind))
		copy(b[257:], "ustar\x0000")
		sum := 0
		for _, c := range b[:512] {
			sum += int(c)
		}
		copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
		copy(b[512:], body)
		return b
	}
	records := ""
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + name, fmt.Sprintf("GNU.sparse.realsize=%d", size)} {
		n := len(r) + 4 // two digits, a space and a line feed
		records += fmt.Sprintf("%d %s\n", n, r)
	}
	return slices.Concat(block("PaxHeaders.0/"+name, tar.TypeXHeader, records), block("GNUSparseFile.0/"+name, tar.TypeReg, "0\n"+strings.Repeat("\x00", 510)), make([]byte, 1024))
}

// TestRead_sparse requires that a sparse file is refused for its format, before it expands.
func TestRead_sparse(t *testing.T) {
	data := sparse(manifestEntry, MaxSize)
	if head, err := tar.NewReader(bytes.NewReader(data)).Next(); err != nil || head.Name != manifestEntry || head.Size != MaxSize {
		t.Fatalf("the test file is not sparse: %v, %v", head, err)
	}
	if _, err := Read(data); err == nil || !strings.Contains(err.Error(), "another format than ustar") {
		t.Errorf("error %v", err)
	}
}

// TestRead_reorderedMembers requires that JSON with other spacing or order is refused even if it
// has the same values.
func TestRead_reorderedMembers(t *testing.T) {
	key, _ := newKey(t)
	d := newDraft(t, 8, key)
	b, err := Read(d.bytes())
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(b.manifest, &members); err != nil {
		t.Fatal(err)
	}
	if d.text, err = json.MarshalIndent(members, "", "  "); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(d.bytes()); err == nil {
		t.Error("a manifest in another order is accepted")
	}
}
