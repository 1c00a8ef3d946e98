// The tool files that are written while clients are connected.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

// folder edits the files of one tools folder.
export const folder = (root) => ({
  // write truncates the file and writes it, as small programs do.
  write: (name, text) => writeFileSync(join(root, name), text),

  // save writes beside the file and renames, as editors do.
  save(name, text) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    const draft = join(dirname(path), ".draft");
    writeFileSync(draft, text);
    renameSync(draft, path);
  },

  remove: (name) => rmSync(join(root, name)),
});

// edits makes the edits of the tour, which stand in tour.edits.
export function edits(root) {
  const { save } = folder(root);
  return {
    notes: (text) => save("notes.md", text + "\n"),
    put: (edit, name) => save(name, readFileSync(new URL(`tour.edits/${edit}`, import.meta.url), "utf8")),
  };
}

export const versioned = (name, version) => `tool "${name}" {
  description = "Says that this file is version ${version}."
  read_only   = true
  output "version" { type = integer }
  run = <<JS
    return { version: ${version} };
  JS
}
`;

export const talkative = `tool "talkative" {
  description = "Logs and reports progress before it returns."
  read_only   = true
  timeout     = "10s"
  run         = <<JS
    for (let step = 1; step <= 3; step++) {
      progress(step, 3, "step " + step);
      log.info("step", { step });
      await new Promise((done) => setTimeout(done, 10));
    }
    return "done";
  JS
}
`;

export const endless = `tool "endless" {
  description = "Reports progress, and then does not return."
  read_only   = true
  timeout     = "5m"
  run         = <<JS
    progress(0);
    await new Promise((done) => setTimeout(done, 1));
    for (;;);
  JS
}
`;

export const broken = `tool "broken" {
  description = "Has no body."
}
`;
