# Methods of host objects return promises. A script that awaits one is compiled
# to an async function. Other scripts have no such cost.

tool "hash_text" {
  title       = "Hash a text"
  description = "Returns {digest}: the cryptographic hash of a text's UTF-8 bytes. Use it to compare or to name content. Not for passwords."
  read_only   = true
  open_world  = false

  input "text" {
    type        = string
    description = "The text to hash; it may be empty"
    max_length  = 1000000
  }
  input "algorithm" {
    type        = string
    description = "SHA-1 is for old systems that demand it"
    enum        = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"]
    default     = "SHA-256"
  }
  input "encoding" {
    type    = string
    enum    = ["hex", "base64"]
    default = "hex"
  }

  output "digest" { type = string }

  run = <<JS
    const bytes = new Uint8Array(await crypto.subtle.digest(input.algorithm, new TextEncoder().encode(input.text)));
    return {
      digest: input.encoding === "hex"
        ? Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
        : btoa(String.fromCharCode(...bytes)),
    };
  JS
}

test "SHA-256 of abc is the one of FIPS 180-4" {
  tool  = "hash_text"
  input = { text = "abc" }
  expect {
    output = { digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" }
  }
}

test "nothing has a hash too" {
  tool  = "hash_text"
  input = { text = "", algorithm = "SHA-1", encoding = "base64" }
  expect {
    output = { digest = "2jmj7l5rSw0yVb/vlWAYkK/YBwk=" }
  }
}

test "text is hashed as UTF-8" {
  tool  = "hash_text"
  input = { text = "é" }
  expect {
    output = { digest = sha256("é") }
  }
}

test "MD5 is not offered" {
  tool  = "hash_text"
  input = { text = "abc", algorithm = "MD5" }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/algorithm .*SHA-256"
  }
}
