# Every kind of content block that a result may hold.

tool "test_image_content" {
  description = "Returns an image."
  read_only   = true
  run         = <<JS
    import media from "./media.json";
    return content.image(media.png, "image/png");
  JS
}

tool "test_audio_content" {
  description = "Returns a sound."
  read_only   = true
  run         = <<JS
    import media from "./media.json";
    return content.audio(media.wav, "audio/wav");
  JS
}

tool "test_embedded_resource" {
  description = "Returns an embedded resource."
  read_only   = true
  run         = <<JS
    return content.resource({
      uri: "test://embedded-resource",
      mimeType: "text/plain",
      text: "This is an embedded resource content.",
    });
  JS
}

tool "test_multiple_content_types" {
  description = "Returns a text, an image and an embedded resource."
  read_only   = true
  run         = <<JS
    import media from "./media.json";
    return [
      content.text("Multiple content types test:"),
      content.image(media.png, "image/png"),
      content.resource({
        uri: "test://mixed-content-resource",
        mimeType: "application/json",
        text: JSON.stringify({ test: "data", value: 123 }),
      }),
    ];
  JS
}

test "the text among other blocks" {
  tool = "test_multiple_content_types"
  expect { text = "Multiple content types test:" }
}
