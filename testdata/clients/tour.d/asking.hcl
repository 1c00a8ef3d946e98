# A call that asks a person. In its tests a mock is the person.

tool "book" {
  description = "Books a table, after asking for how many. Returns a line of text."
  timeout     = "5s"

  input "day" { type = string }

  allow {
    ask { elicit = true }
  }

  run = <<JS
    const schema = {
      type: "object",
      properties: { guests: { type: "integer", title: "Guests", minimum: 1 } },
      required: ["guests"],
    };
    try {
      const answer = await elicit({ message: `How many come on ${input.day}?`, schema });
      return `A table for ${answer.content.guests} on ${input.day}`;
    } catch (error) {
      if (error instanceof AskDenied) return `No table on ${input.day}: ${error.reason}`;
      throw error;
    }
  JS
}

test "a person answers" {
  tool  = "book"
  input = { day = "Monday" }
  mock "elicit" "elicit" { json = { guests = 3 } }
  expect { text = "A table for 3 on Monday" }
}

test "a person declines" {
  tool  = "book"
  input = { day = "Monday" }
  mock "elicit" "elicit" { json = { action = "decline" } }
  expect { text = "No table on Monday: declined" }
}
