// One good call of every shipped tool, and what must come of it: the structured
// content, or a function that judges it.
import assert from "node:assert/strict";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export const calls = {
  add: [{ a: 2, b: 3 }, { sum: 5 }],
  add_to_date: [{ date: "2024-01-31", months: 1 }, { date: "2024-02-29", weekday: "Thursday" }],
  calculate: [{ expression: "2 * (3 + 4)" }, { value: 14 }],
  change_case: [{ text: "Parse the HTTPServer log2", style: "snake" }, { text: "parse_the_http_server_log_2" }],
  convert_temperature: [{ value: 100, to: "fahrenheit" }, { value: 212, units: "fahrenheit" }],
  count_text: [{ text: "naïve 🙂\nend\n" }, { characters: 12, bytes: 16, words: 3, lines: 2 }],
  csv_to_json: [{ csv: "a,b\n1,x\n" }, { columns: ["a", "b"], rows: [{ a: "1", b: "x" }], count: 1 }],
  days_between: [{ start: "2024-02-01", end: "2024-03-01" }, { days: 29, weekdays: 21 }],
  diff_text: [{ before: "a\nb\n", after: "a\nc\n" }, { same: false, added: 1, removed: 1, diff: "@@ -1,2 +1,2 @@\n a\n-b\n+c" }],
  draft_refund: [
    { customer_id: "C-1042", amount_cents: 1250, because: "The parcel never arrived." },
    { text: "Refund 12.50 to customer C-1042.\nReason: The parcel never arrived." },
  ],
  extract_matches: [
    { text: "from 2024-01", pattern: "(?<year>\\d{4})-(\\d\\d)" },
    { matches: [{ text: "2024-01", index: 5, groups: ["2024", "01"], named: { year: "2024" } }], count: 1, more: false },
  ],
  factor_number: [{ number: 360 }, { factors: [2, 2, 2, 3, 3, 5], prime: false }],
  get_customer: [{ customer_id: "C-1042" }, { customer_id: "C-1042", status: "active" }],
  get_weather: [{ location: "Berlin" }, { location: "Berlin", condition: "partly cloudy", low: 14, high: 25, units: "celsius" }],
  hash_text: [{ text: "abc" }, { digest: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" }],
  multiply: [{ a: -6, b: 7 }, { product: -42 }],
  new_ids: [
    { count: 2 },
    ({ ids }) => {
      assert.equal(new Set(ids).size, 2);
      for (const id of ids) assert.match(id, uuid);
    },
  ],
  query_json: [{ data: { items: [{ name: "a" }] }, path: "items[*].name" }, { matches: ["a"], count: 1 }],
  rate_password: [{ password: "tramp-velvet-onion-44" }, { bits: 128.3, verdict: "strong", advice: [] }],
  render_template: [{ template: "{{#tags}}[{{.}}]{{/tags}}", data: { tags: ["a", 1] } }, { text: "[a][1]" }],
  reshape_records: [{ records: [{ b: 1, a: 2 }], pick: ["a"] }, { records: [{ a: 2 }], count: 1 }],
  roll_dice: [{ count: 3, sides: 1 }, { rolls: [1, 1, 1], total: 3 }],
  show_color: [
    { color: "#3366cc" },
    { red: 51, green: 102, blue: 204, contrast_black: 3.91, contrast_white: 5.37, text: "white" },
  ],
  slugify: [{ text: "Größe & Höhe" }, { slug: "grosse-and-hohe" }],
  summarize_text: [{ text: "Version 1.5 is out!" }, { summary: "Version 1.5 is out!", kept: 1, of: 1 }],
  who_am_i: [
    {},
    ({ known, claimed }) => {
      assert.deepEqual(known.scopes, []);
      assert.deepEqual(claimed, { agent_id: "mcpd-ci/1.0.0" });
    },
  ],
};
