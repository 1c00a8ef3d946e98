# Small tools with at most one enum: constraints validate the arguments, so the
# scripts have a few lines.

tool "change_case" {
  title       = "Change the case of a text"
  description = "Rewrites a text in another case. Returns {text}. The styles from camel on treat it as one name: they drop everything but letters and digits."
  read_only   = true
  open_world  = false

  input "text" {
    type        = string
    description = "The text to rewrite"
    min_length  = 1
    max_length  = 10000
  }
  input "style" {
    type        = string
    description = "sentence: only the first letter is upper case; title: that of every word"
    enum        = ["upper", "lower", "title", "sentence", "camel", "pascal", "snake", "kebab", "constant"]
  }

  output "text" { type = string }

  run = <<JS
    const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);
    const lower = input.text.toLowerCase();

    // Words of a name: fooBar, HTTPServer, foo_bar and "foo bar" have two each.
    const words = () => {
      const found = input.text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[\u00c0-\uffff]+/g);
      if (!found) throw new ToolError("the text has neither letters nor digits");
      return found.map((word) => word.toLowerCase());
    };

    switch (input.style) {
      case "upper": return { text: input.text.toUpperCase() };
      case "lower": return { text: lower };
      case "title": return { text: lower.split(" ").map(capital).join(" ") };
      case "sentence": return { text: capital(lower) };
      case "camel": return { text: words().map((word, i) => (i === 0 ? word : capital(word))).join("") };
      case "pascal": return { text: words().map(capital).join("") };
      case "snake": return { text: words().join("_") };
      case "kebab": return { text: words().join("-") };
      case "constant": return { text: words().join("_").toUpperCase() };
    }
  JS
}

tool "slugify" {
  title       = "Make a slug"
  description = "Turns a title into a slug for a URL or a file name: lower-case ASCII letters and digits, with dashes between. Returns {slug}."
  read_only   = true
  open_world  = false

  input "text" {
    type        = string
    description = "The title"
    min_length  = 1
    max_length  = 500
  }
  input "max_length" {
    type        = integer
    description = "Longest slug that will do; it is cut between words where possible"
    default     = 80
    min         = 8
    max         = 200
  }

  # The output has a type, and mcpd validates the result of the script.
  output "slug" {
    type    = string
    pattern = "^[a-z0-9]+(-[a-z0-9]+)*$"
  }

  run = <<JS
    const spelled = { "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "&": " and " };
    const words = input.text
      .normalize("NFKD") // é becomes e and an accent
      .toLowerCase()
      .replace(/[\u0300-\u036f'\u2019]/g, "")
      .replace(/[ßæœøđðłþ&]/g, (c) => spelled[c])
      .split(/[^a-z0-9]+/)
      .filter(Boolean);
    if (words.length === 0) throw new ToolError("nothing of this text can stand in a slug");

    let slug = words[0].slice(0, input.max_length);
    for (const word of words.slice(1)) {
      if (slug.length + 1 + word.length > input.max_length) break;
      slug += "-" + word;
    }
    return { slug };
  JS
}

tool "count_text" {
  title       = "Count words, lines and characters"
  description = "Counts what a text is made of. Returns {characters, bytes, words, lines}: characters are Unicode code points, bytes are UTF-8. Use it rather than estimate a length."
  read_only   = true
  open_world  = false

  input "text" {
    type        = string
    description = "The text to measure; it may be empty"
    max_length  = 200000
  }

  output "characters" { type = integer }
  output "bytes" { type = integer }
  output "words" { type = integer }
  output "lines" { type = integer }

  run = <<JS
    const { text } = input;
    const trimmed = text.trim();
    return {
      characters: [...text].length,
      bytes: new TextEncoder().encode(text).length,
      words: trimmed === "" ? 0 : trimmed.split(/\s+/).length,
      lines: text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0),
    };
  JS
}

test "a title in snake case" {
  tool  = "change_case"
  input = { text = "Parse the HTTPServer log2", style = "snake" }
  expect {
    output = { text = "parse_the_http_server_log_2" }
  }
}

test "words of other alphabets are words" {
  tool  = "change_case"
  input = { text = "crème BRÛLÉE", style = "title" }
  expect {
    output = { text = "Crème Brûlée" }
  }
}

test "punctuation makes no name" {
  tool  = "change_case"
  input = { text = "?!", style = "camel" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "neither letters nor digits"
  }
}

test "an unknown style names those there are" {
  tool  = "change_case"
  input = { text = "x", style = "spongebob" }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/style .*kebab"
  }
}

test "accents and signs are spelled out" {
  tool  = "slugify"
  input = { text = "  Größe & Höhe: l'été à Łódź! " }
  expect {
    output = { slug = "grosse-and-hohe-lete-a-lodz" }
  }
}

test "a slug is cut between words" {
  tool  = "slugify"
  input = { text = "one two three four", max_length = 12 }
  expect {
    output = { slug = "one-two" }
  }
}

test "nothing is left of punctuation" {
  tool  = "slugify"
  input = { text = "???" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "nothing of this text"
  }
}

test "a sign outside of the basic plane is one character" {
  tool  = "count_text"
  input = { text = "naïve 🙂\nend\n" }
  expect {
    output = { characters = 12, bytes = 16, words = 3, lines = 2 }
  }
}

test "nothing is in an empty text" {
  tool  = "count_text"
  input = { text = "" }
  expect {
    output = { characters = 0, bytes = 0, words = 0, lines = 0 }
  }
}

test "a text is needed" {
  tool  = "count_text"
  input = {}
  expect {
    error           = "INVALID_INPUT"
    message_matches = "text"
  }
}
