# Rich content: a result may have images besides its value. The model gets the
# value as data, and a client can show the image to the user.

tool "show_color" {
  title       = "Show a color"
  description = <<-TEXT
    Shows a swatch of a color and returns {red, green, blue, contrast_black,
    contrast_white, text}: its channels, its WCAG contrast ratios, and which
    text color reads better on it.
  TEXT
  timeout     = "10s" # for a machine under load
  read_only   = true
  open_world  = false

  input "color" {
    type        = string
    description = "Hex color, like #3366cc"
    pattern     = "^#[0-9A-Fa-f]{6}$"
  }

  output "red" { type = integer }
  output "green" { type = integer }
  output "blue" { type = integer }
  output "contrast_black" { type = number }
  output "contrast_white" { type = number }
  output "text" {
    type = string
    enum = ["black", "white"]
  }

  run = <<JS
    const rgb = [1, 3, 5].map((at) => parseInt(input.color.slice(at, at + 2), 16));

    // WCAG 2.2, relative luminance and contrast ratio.
    const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
    const rounded = (n) => Math.round(n * 100) / 100;
    const black = rounded((luminance + 0.05) / 0.05), white = rounded(1.05 / (luminance + 0.05));

    // A PNG of one palette entry: one bit a pixel, all of them 0, not compressed.
    const bytes32 = (n) => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255];
    function crc32(bytes) {
      let crc = -1;
      for (const byte of bytes) {
        crc ^= byte;
        for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
      }
      return ~crc >>> 0;
    }
    function chunk(type, data) {
      const body = [...type].map((c) => c.charCodeAt(0)).concat(data);
      return [...bytes32(data.length), ...body, ...bytes32(crc32(body))];
    }
    const side = 32;
    const rows = new Array(side * (1 + side / 8)).fill(0); // each row: its filter, then its pixels
    const adler = ((rows.length % 65521) << 16) | 1;       // of that many zeros
    const zlib = [0x78, 0x01, 1, rows.length & 255, rows.length >> 8, ~rows.length & 255, (~rows.length >> 8) & 255, ...rows, ...bytes32(adler)];
    const png = [
      0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a,
      ...chunk("IHDR", [...bytes32(side), ...bytes32(side), 1, 3, 0, 0, 0]),
      ...chunk("PLTE", rgb),
      ...chunk("IDAT", zlib),
      ...chunk("IEND", []),
    ];

    const value = {
      red: rgb[0], green: rgb[1], blue: rgb[2],
      contrast_black: black, contrast_white: white, text: black >= white ? "black" : "white",
    };
    return content.structured(value, [
      content.text(`${input.color} reads best with ${value.text} text`),
      content.image(btoa(String.fromCharCode(...png)), "image/png"),
    ]);
  JS
}

test "white text reads best on blue" {
  tool  = "show_color"
  input = { color = "#3366cc" }
  expect {
    output = { red = 51, green = 102, blue = 204, contrast_black = 3.91, contrast_white = 5.37, text = "white" }
    text   = "#3366cc reads best with white text"
  }
}

test "white itself is 21 to 1" {
  tool  = "show_color"
  input = { color = "#FFFFFF" }
  expect {
    output = { red = 255, green = 255, blue = 255, contrast_black = 21, contrast_white = 1, text = "black" }
  }
}

test "names are no hex colors" {
  tool  = "show_color"
  input = { color = "navy" }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/color "
  }
}
