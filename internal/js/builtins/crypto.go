package builtins

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"slices"
	"strings"

	"github.com/dop251/goja"
)

// makeCrypto returns crypto: randomUUID, getRandomValues and subtle. All randomness comes from the
// seed of the call, so that a replay repeats it.
func (r *Realm) makeCrypto() *goja.Object {
	o := r.Runtime.NewObject()
	r.Method(o, "randomUUID", func(goja.FunctionCall) goja.Value { return r.Runtime.ToValue(r.UUID()) })
	r.Method(o, "getRandomValues", func(c goja.FunctionCall) goja.Value {
		data, ok := r.BytesOf(c.Argument(0))
		if !ok || len(data) > 65536 {
			panic(r.TypeError("crypto.getRandomValues needs a typed array of at most 65,536 bytes"))
		}
		r.fill(data)
		return c.Argument(0)
	})
	if r.Program.Mentions("subtle") {
		_ = o.DefineDataProperty("subtle", r.makeSubtle(), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	return o
}

func (r *Realm) fill(data []byte) {
	if r.random == nil {
		r.random = r.Caller.CryptoRand()
	}
	_, _ = r.random.Read(data)
}

// UUID returns a random UUID of version 4 (RFC 9562, section 5.4).
func (r *Realm) UUID() string {
	var id [16]byte
	r.fill(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// makeSubtle returns crypto.subtle: digest, and importKey, sign and verify for HMAC.
func (r *Realm) makeSubtle() *goja.Object {
	o := r.Runtime.NewObject()
	r.promising(o, "digest", r.digest)
	r.promising(o, "importKey", r.importKey)
	r.promising(o, "sign", func(c goja.FunctionCall) goja.Value {
		return r.newBuffer(r.mac(c.Argument(1), c.Argument(2)))
	})
	r.promising(o, "verify", func(c goja.FunctionCall) goja.Value {
		given, ok := r.BytesOf(c.Argument(2))
		if !ok {
			panic(r.TypeError("crypto.subtle.verify: the signature must be bytes"))
		}
		return r.Runtime.ToValue(hmac.Equal(given, r.mac(c.Argument(1), c.Argument(3))))
	})
	return o
}

// promising adds a method that returns a promise of the value or exception of f.
func (r *Realm) promising(o *goja.Object, name string, f native) {
	r.Method(o, name, func(c goja.FunctionCall) goja.Value {
		promise, resolve, reject := r.Runtime.NewPromise()
		var v goja.Value
		var err error
		if exception := r.Runtime.Try(func() { v = f(c) }); exception != nil {
			err = reject(exception.Value())
		} else {
			err = resolve(v)
		}
		if err != nil {
			panic(err)
		}
		return r.Runtime.ToValue(promise)
	})
}

func (r *Realm) digest(c goja.FunctionCall) goja.Value {
	data, ok := r.BytesOf(c.Argument(1))
	if !ok {
		panic(r.TypeError("crypto.subtle.digest(algorithm, data): data must be bytes, as TextEncoder makes them"))
	}
	h := r.hash(c.Argument(0))()
	r.feed(h, data)
	return r.newBuffer(h.Sum(nil))
}

func (r *Realm) feed(h hash.Hash, data []byte) {
	for piece := range slices.Chunk(data, 64<<10) {
		r.Proceed()
		h.Write(piece)
	}
}

// hash returns the hash function of an algorithm: "SHA-256" or { name: "SHA-256" }.
func (r *Realm) hash(algorithm goja.Value) func() hash.Hash {
	if o, ok := algorithm.(*goja.Object); ok {
		algorithm = Option(o, "name")
	}
	switch name := strings.ToUpper(TextOf(algorithm)); name {
	case "SHA-1":
		return sha1.New
	case "SHA-256":
		return sha256.New
	case "SHA-384":
		return sha512.New384
	case "SHA-512":
		return sha512.New
	}
	panic(r.TypeError("crypto.subtle knows SHA-1, SHA-256, SHA-384 and SHA-512"))
}

type hmacKey struct {
	secret []byte
	hash   func() hash.Hash
}

// importKey is importKey("raw", bytes, { name: "HMAC", hash }, extractable, usages).
func (r *Realm) importKey(c goja.FunctionCall) goja.Value {
	algorithm := c.Argument(2)
	if TextOf(c.Argument(0)) != "raw" || !strings.EqualFold(TextOf(Option(algorithm, "name")), "HMAC") {
		panic(r.TypeError(`crypto.subtle.importKey knows importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"])`))
	}
	secret, ok := r.BytesOf(c.Argument(1))
	if !ok {
		panic(r.TypeError("crypto.subtle.importKey: the key must be bytes"))
	}
	key := r.Runtime.NewObject()
	_ = key.Set("type", "secret")
	r.Bind(key, &hmacKey{secret: append([]byte(nil), secret...), hash: r.hash(Option(algorithm, "hash"))})
	return key
}

func (r *Realm) mac(key, data goja.Value) []byte {
	k := Self[*hmacKey](r, key)
	message, ok := r.BytesOf(data)
	if !ok {
		panic(r.TypeError("crypto.subtle: the data must be bytes, as TextEncoder makes them"))
	}
	h := hmac.New(k.hash, k.secret)
	r.feed(h, message)
	return h.Sum(nil)
}
