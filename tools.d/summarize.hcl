# Text in, text out: an extractive summary, which selects sentences of the text.
# It uses no model. The result is small and typed although the input is long, so
# a model can use it easily.

tool "summarize_text" {
  title       = "Summarize a text"
  description = <<-TEXT
    Returns the sentences of a text that say most about it, in their own order
    and unchanged. Works for prose in languages that put spaces between words.
    Returns {summary, kept, of}: how many sentences were kept, of how many.
  TEXT
  timeout     = "3s"
  read_only   = true
  open_world  = false

  input "text" {
    type        = string
    description = "The text, at most 50,000 characters"
    min_length  = 1
    max_length  = 50000
  }
  input "sentences" {
    type        = integer
    description = "How many sentences to keep"
    default     = 3
    min         = 1
    max         = 20
  }

  output "summary" { type = string }
  output "kept" {
    type = integer
    min  = 1
  }
  output "of" {
    type = integer
    min  = 1
  }

  run = <<JS
    const common = new Set((
      "a an and are as at be been but by can did do does for from had has have he her him his how i if in into is it " +
      "its just may more most no not of on one or other our out she so some such than that the their them then there " +
      "these they this those to up was we were what when which who will with would you your"
    ).split(" "));

    // A sentence ends with . ! or ? before white space, or with an empty line.
    function sentencesOf(text) {
      const found = [];
      let start = 0;
      const cut = (end) => {
        const sentence = text.slice(start, end).split("\n").join(" ").trim();
        if (sentence) found.push(sentence);
        start = end;
      };
      for (let i = 0; i < text.length; i++) {
        const c = text[i], next = text[i + 1];
        if ((c === "." || c === "!" || c === "?") && (next === " " || next === "\n" || next === "\t")) cut(i + 1);
        if (c === "\n" && next === "\n") cut(i + 1);
      }
      cut(text.length);
      return found;
    }

    const wordsOf = (sentence) =>
      sentence.toLowerCase().split(/[\s.,;:!?"'()\[\]{}<>\u2018-\u201f\u2026\u2013\u2014]+/).filter((w) => w.length > 1 && !common.has(w));

    const sentences = sentencesOf(input.text);
    if (sentences.length === 0) throw new ToolError("the text is blank");

    const counts = new Map();
    const words = sentences.map(wordsOf);
    for (const word of words.flat()) counts.set(word, (counts.get(word) ?? 0) + 1);

    // The score of a sentence is the average frequency of its words in the text,
    // so that long sentences have no advantage.
    const ranked = words.map((list, place) => {
      const total = list.reduce((sum, word) => sum + counts.get(word), 0);
      return { place, score: total / (list.length + 3) };
    });
    ranked.sort((a, b) => b.score - a.score || a.place - b.place);
    const kept = ranked.slice(0, input.sentences).sort((a, b) => a.place - b.place);
    return {
      summary: kept.map(({ place }) => sentences[place]).join(" "),
      kept: kept.length,
      of: sentences.length,
    };
  JS
}

test "the sentences that say most are kept, in their order" {
  tool = "summarize_text"
  input = {
    text      = "It rained. A snapshot is made of files, and every call reads one snapshot. Somebody laughed. When files change, a new snapshot of the files is made. Nobody cared."
    sentences = 2
  }
  expect {
    output = {
      summary = "A snapshot is made of files, and every call reads one snapshot. When files change, a new snapshot of the files is made."
      kept    = 2
      of      = 5
    }
  }
}

test "a short text is its own summary" {
  tool  = "summarize_text"
  input = { text = "Version 1.5 is out!" }
  expect {
    output = { summary = "Version 1.5 is out!", kept = 1, of = 1 }
  }
}

test "nothing can be said of white space" {
  tool  = "summarize_text"
  input = { text = "  \n\n " }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^the text is blank$"
  }
}
