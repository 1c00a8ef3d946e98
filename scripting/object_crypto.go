package scripting

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

// makeCrypto makes crypto: randomUUID, getRandomValues and subtle. All
// randomness comes from the call's seed, so that a replay repeats it.
func (r *realm) makeCrypto() *goja.Object {
	o := r.rt.NewObject()
	r.method(o, "randomUUID", func(goja.FunctionCall) goja.Value { return r.rt.ToValue(r.uuid()) })
	r.method(o, "getRandomValues", func(c goja.FunctionCall) goja.Value {
		data, ok := r.bytesOf(c.Argument(0))
		if !ok || len(data) > 65536 {
			panic(r.typeError("crypto.getRandomValues needs a typed array of at most 65,536 bytes"))
		}
		r.fill(data)
		return c.Argument(0)
	})
	if r.program.Mentions("subtle") {
		_ = o.DefineDataProperty("subtle", r.makeSubtle(), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	return o
}

func (r *realm) fill(data []byte) {
	if r.random == nil {
		r.random = r.caller.Secret()
	}
	_, _ = r.random.Read(data)
}

// uuid returns a random UUID of version 4 (RFC 9562, section 5.4).
func (r *realm) uuid() string {
	var id [16]byte
	r.fill(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// makeSubtle makes crypto.subtle: digest, and importKey, sign and verify for HMAC.
func (r *realm) makeSubtle() *goja.Object {
	o := r.rt.NewObject()
	r.promising(o, "digest", r.digest)
	r.promising(o, "importKey", r.importKey)
	r.promising(o, "sign", func(c goja.FunctionCall) goja.Value {
		return r.newBuffer(r.mac(c.Argument(1), c.Argument(2)))
	})
	r.promising(o, "verify", func(c goja.FunctionCall) goja.Value {
		given, ok := r.bytesOf(c.Argument(2))
		if !ok {
			panic(r.typeError("crypto.subtle.verify: the signature must be bytes"))
		}
		return r.rt.ToValue(hmac.Equal(given, r.mac(c.Argument(1), c.Argument(3))))
	})
	return o
}

// promising adds a method that returns a promise of what f returns or throws.
func (r *realm) promising(o *goja.Object, name string, f native) {
	r.method(o, name, func(c goja.FunctionCall) goja.Value {
		promise, resolve, reject := r.rt.NewPromise()
		var v goja.Value
		var err error
		if exception := r.rt.Try(func() { v = f(c) }); exception != nil {
			err = reject(exception.Value())
		} else {
			err = resolve(v)
		}
		if err != nil {
			panic(err)
		}
		return r.rt.ToValue(promise)
	})
}

func (r *realm) digest(c goja.FunctionCall) goja.Value {
	data, ok := r.bytesOf(c.Argument(1))
	if !ok {
		panic(r.typeError("crypto.subtle.digest(algorithm, data): data must be bytes, as TextEncoder makes them"))
	}
	h := r.hash(c.Argument(0))()
	r.feed(h, data)
	return r.newBuffer(h.Sum(nil))
}

func (r *realm) feed(h hash.Hash, data []byte) {
	for piece := range slices.Chunk(data, 64<<10) {
		r.proceed()
		h.Write(piece)
	}
}

// hash returns the hash that an algorithm names: "SHA-256" or { name: "SHA-256" }.
func (r *realm) hash(algorithm goja.Value) func() hash.Hash {
	if o, ok := algorithm.(*goja.Object); ok {
		algorithm = option(o, "name")
	}
	switch name := strings.ToUpper(textOf(algorithm)); name {
	case "SHA-1":
		return sha1.New
	case "SHA-256":
		return sha256.New
	case "SHA-384":
		return sha512.New384
	case "SHA-512":
		return sha512.New
	}
	panic(r.typeError("crypto.subtle knows SHA-1, SHA-256, SHA-384 and SHA-512"))
}

type hmacKey struct {
	secret []byte
	hash   func() hash.Hash
}

// importKey is importKey("raw", bytes, { name: "HMAC", hash }, extractable, usages).
func (r *realm) importKey(c goja.FunctionCall) goja.Value {
	algorithm := c.Argument(2)
	if textOf(c.Argument(0)) != "raw" || !strings.EqualFold(textOf(option(algorithm, "name")), "HMAC") {
		panic(r.typeError(`crypto.subtle.importKey knows importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"])`))
	}
	secret, ok := r.bytesOf(c.Argument(1))
	if !ok {
		panic(r.typeError("crypto.subtle.importKey: the key must be bytes"))
	}
	key := r.rt.NewObject()
	_ = key.Set("type", "secret")
	r.bind(key, &hmacKey{secret: append([]byte(nil), secret...), hash: r.hash(option(algorithm, "hash"))})
	return key
}

func (r *realm) mac(key, data goja.Value) []byte {
	k := self[*hmacKey](r, key)
	message, ok := r.bytesOf(data)
	if !ok {
		panic(r.typeError("crypto.subtle: the data must be bytes, as TextEncoder makes them"))
	}
	h := hmac.New(k.hash, k.secret)
	r.feed(h, message)
	return h.Sum(nil)
}
