tool "add_note" {
  description = "Saves a note. Returns its number."

  input "text" {
    type       = string
    min_length = 1
    max_length = 1000
  }

  allow {
    kv "notes" {
      scope    = "principal"
      ttl      = "720h"
      max_keys = 100
    }
  }

  run = <<JS
    const number = await kv.notes.incr("count");
    try {
      await kv.notes.put("note/" + String(number).padStart(6, "0"), { number, text: input.text });
    } catch (error) {
      if (error instanceof HostError && error.code === "TOO_LARGE") throw new ToolError("the pad is full; remove a note first");
      throw error;
    }
    return number;
  JS
}

tool "list_notes" {
  description = "Returns the notes of the caller, oldest first."
  read_only   = true

  input "begins" {
    type     = string
    required = false
  }

  allow {
    kv "notes" {
      scope    = "principal"
      ttl      = "720h"
      max_keys = 100
    }
  }

  run = <<JS
    const notes = await Promise.all((await kv.notes.list("note/")).map((key) => kv.notes.get(key)));
    return notes.filter((note) => note && note.text.startsWith(input.begins ?? ""));
  JS
}

tool "remove_note" {
  description = "Removes a note by its number."
  idempotent  = true

  input "number" {
    type = integer
    min  = 1
  }

  allow {
    kv "notes" {
      scope    = "principal"
      ttl      = "720h"
      max_keys = 100
    }
  }

  run = <<JS
    if (!await kv.notes.delete("note/" + String(input.number).padStart(6, "0"))) throw new ToolError(`there is no note ${input.number}`);
    return "removed";
  JS
}

test "the first note" {
  tool  = "add_note"
  input = { text = "buy milk" }
  expect { text = "1" }
}

test "the third note" {
  tool  = "add_note"
  input = { text = "buy milk" }
  mock "kv.notes" "count" { json = 2 }
  expect { text = "3" }
}

test "notes that start with a word" {
  tool  = "list_notes"
  input = { begins = "buy" }
  mock "kv.notes" "note/000001" {
    json = { number = 1, text = "buy milk" }
  }
  mock "kv.notes" "note/000002" {
    json = { number = 2, text = "call Ada" }
  }
  expect { output = [{ number = 1, text = "buy milk" }] }
}

test "a missing note" {
  tool  = "remove_note"
  input = { number = 7 }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^there is no note 7$"
  }
}
