//! Pictures that a provider refuses: exactly those become notes, whatever the words, and the session goes on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server};

const SEES: &str = "capabilities: { vision: true }\n";

/// The bytes of a picture with this name.
fn draw(name: &str) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n", name.as_bytes()].concat()
}

/// True if a request holds the picture of this name.
fn shows(request: &Request, name: &str) -> bool {
    request.raw.contains(&STANDARD.encode(draw(name)))
}

/// The number of the message with the picture, and of the picture in it.
fn find_picture(request: &Request, name: &str) -> Option<(usize, usize)> {
    let data = STANDARD.encode(draw(name));
    request.messages().iter().enumerate().find_map(|(at, message)| {
        let parts = message["content"].as_array()?;
        Some((at, parts.iter().position(|part| part.to_string().contains(&data))?))
    })
}

/// A run with pictures of these names, before the server.
fn look(server: &Server, names: &[&str]) -> Run {
    let run = Run::task(server, "look").config("models/default.yaml", SEES).args(["-o", "jsonl"]);
    names.iter().fold(run, |run, name| run.file(name, draw(name)).args(["-f", name]))
}

fn go_on(output: &Output, server: &Server) -> Output {
    Run::at(&output.place).args(["run", "--continue", "more", "-o", "jsonl"]).server(server).run()
}

/// The words in which providers refuse one picture, `{}` its place, from their documents and their answers.
const WORDINGS: &[(u16, &str)] = &[
    // Anthropic
    (400, "messages.{}.image.source.base64: image exceeds 5 MB maximum: 6400000 bytes > 5242880 bytes"),
    (
        400,
        "messages.{}.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
    ),
    (400, "Could not process image"),
    (400, "messages.{}.image.source.base64.data: Image does not match the provided media type image/png"),
    // OpenAI
    (400, "The image data you provided does not represent a valid image. Please check your input and try again."),
    (
        400,
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png'].",
    ),
    // Gemini
    (400, "Unable to process input image. Please retry or report in https://developers.generativeai.google/"),
    (400, "Provided image is not valid."),
    // Mistral, vLLM
    (400, "cannot identify image file <_io.BytesIO object at 0x7f>"),
    // llama.cpp, Ollama
    (400, "Failed to load image or audio file"),
    (500, "Failed to process inputs: image: unknown format"),
    // Groq
    (400, "invalid image data"),
    // A pointer without a word for it.
    (422, "messages.{}: Input should be a valid dictionary"),
];

#[test]
fn exactly_the_refused_picture_becomes_a_note() {
    for (status, words) in WORDINGS {
        let server = Server::answering(move |request, _| match find_picture(request, "bad.png") {
            Some((message, part)) => {
                Reply::error(*status, &words.replace("{}", &format!("{message}.content.{part}")))
            }
            None => Reply::text("seen"),
        });
        for order in [["bad.png", "good.png"], ["good.png", "bad.png"]] {
            let output = look(&server, &order).run().success();
            let asked = server.requests();
            let last = asked.last().expect("requests");
            assert!(shows(last, "good.png"), "{words}: the other picture stays: {}", last.raw);
            assert!(last.raw.contains("The provider does not take this picture"), "{words}: {}", last.raw);
            let told = output.events().one("warning")["message"].as_str().expect("words").to_owned();
            assert!(told.contains("the provider does not take picture") && told.contains("HTTP"), "{told}");
            // The next run sends it no more, and shows what stayed.
            let before = server.requests().len();
            go_on(&output, &server).success();
            let asked = server.requests();
            assert_eq!(asked.len(), before + 1, "{words}: nothing is refused again");
            assert!(shows(&asked[before], "good.png") && !shows(&asked[before], "bad.png"), "{words}");
        }
    }
}

#[test]
fn a_refused_picture_of_a_result_leaves_the_words_of_the_result() {
    let server =
        Server::answering(|request, _| match (find_picture(request, "bad.png"), request.tool_results().len()) {
            (Some((message, part)), _) => {
                Reply::error(400, &format!("messages[{message}].content[{part}].image_url: no image"))
            }
            (None, 0) => Reply::call("view_image", &serde_json::json!({ "path": "bad.png" })),
            (None, _) => Reply::text("done"),
        });
    let run = Run::task(&server, "look").config("models/default.yaml", SEES).file("bad.png", draw("bad.png"));
    run.run().success();
    let last = server.requests().pop().expect("requests");
    let last = last.last_result();
    assert!(
        last.contains("bad.png: image/png") && last.contains("The provider does not take this picture"),
        "{last}"
    );
}

#[test]
fn of_too_many_pictures_the_newest_stay() {
    let names = ["a.png", "b.png", "c.png", "d.png", "e.png"];
    for (words, most, sent) in [
        ("At most 2 image(s) may be provided in one prompt.", 2, 2),
        ("Too many images provided. This model supports up to 3 images", 3, 3),
        ("Too many images.", 2, 2),
    ] {
        let server = Server::answering(move |request, _| {
            let count = names.iter().filter(|name| shows(request, name)).count();
            if count > most { Reply::error(400, words) } else { Reply::text("seen") }
        });
        look(&server, &names).run().success();
        let last = server.requests().pop().expect("requests");
        for (at, name) in names.iter().enumerate() {
            assert_eq!(shows(&last, name), at >= names.len() - sent, "{words}: {name}");
        }
    }
}

#[test]
fn pictures_that_make_a_request_too_large_go_and_the_budget_stays() {
    let large = |name: &str| [draw(name), vec![b'x'; 1 << 20]].concat();
    let server = Server::answering(|request, _| match request.raw.len() {
        2_000_000.. => Reply::error(413, "Request exceeds the maximum size"),
        _ => Reply::text("seen"),
    });
    let run = Run::task(&server, "look").config("models/default.yaml", SEES).args(["-o", "jsonl"]);
    let names = ["a.png", "b.png", "c.png"];
    let output =
        names.iter().fold(run, |run, name| run.file(name, large(name)).args(["-f", name])).run().success();
    let last = server.requests().pop().expect("requests");
    assert_eq!(last.raw.matches("image_url").count() / 2, 1, "one is left");
    let compressed = output.events().of("context.compressed").len();
    assert_eq!(compressed, 1, "nothing but the pictures went: {}", output.shown());
    assert!(!output.stdout.contains("the budget is"), "{}", output.shown());
}

#[test]
fn a_model_without_eyes_gets_notes_and_a_parameter_is_not_a_picture() {
    for words in [
        "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`",
        "Invalid content type. image_url is only supported by certain models.",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "No endpoints found that support image input",
        "some-model is not a multimodal model",
    ] {
        let server = Server::answering(move |request, _| {
            if request.raw.contains("image_url") { Reply::error(400, words) } else { Reply::text("blind") }
        });
        look(&server, &["a.png", "b.png"]).run().success();
        assert_eq!(server.requests().len(), 2, "{words}: it is told once");
        assert!(server.requests()[1].raw.contains("do not see pictures"), "{words}");
    }
    let server = Server::answering(|request, _| match request.body.get("temperature") {
        Some(_) => Reply::error(400, "Model grok-2-vision does not support parameter temperature."),
        None => Reply::text("seen"),
    });
    let model = format!("{SEES}temperature: 0.5\n");
    look(&server, &["a.png"]).config("models/default.yaml", &model).run().success();
    assert!(shows(server.requests().last().expect("requests"), "a.png"));
}

const CLAUDE: &str = "base_url: http://api.anthropic.com/v1\nwire: chat\nmodel: claude-haiku-4-5\n";

/// A run with seven pictures: three quarters of the 32 MiB of a request to Claude hold five of them, as base64.
fn look_at_seven(run: Run) -> Run {
    const BYTES: usize = 3 << 20;
    let names = ["1.png", "2.png", "3.png", "4.png", "5.png", "6.png", "7.png"];
    let large = |name: &str| [draw(name), vec![b'-'; BYTES]].concat();
    names.iter().fold(run, |run, name| run.file(name, large(name)).args(["-f", name]))
}

fn address_as_proxy(server: &Server) -> String {
    server.url().trim_end_matches("/v1").to_owned()
}

#[test]
fn pictures_beyond_what_the_provider_takes_are_left_out_before_it_refuses_them() {
    let server = Server::start([Reply::text("Seen."), Reply::text("And now?")]);
    let proxy = address_as_proxy(&server);
    let run = Run::task(&server, "look").config("models/default.yaml", CLAUDE).env("HTTP_PROXY", &proxy);
    let output = look_at_seven(run).args(["-o", "jsonl"]).run().success();
    let told = output.events().one("warning")["message"].as_str().expect("words").to_owned();
    let known = "at most 100 pictures and 33554432 bytes in a request";
    assert!(told.contains(&format!("does not take picture 2 of m1, picture 1 of m1 ({known})")), "{told}");
    Run::at(&output.place).args(["run", "--continue", "more"]).env("HTTP_PROXY", &proxy).run().success();
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let parts = request.raw.matches("data:image/png;base64").count();
        assert!(parts == 5 && request.raw.contains(known), "{parts}");
    }
}

#[test]
fn pictures_that_are_not_sent_are_not_too_many() {
    let server = Server::start([Reply::text("Seen."), Reply::text("And now?")]);
    let proxy = address_as_proxy(&server);
    let output = look_at_seven(Run::task(&server, "look").config("models/default.yaml", SEES)).run().success();
    let blind = format!("{CLAUDE}capabilities: {{ vision: false }}\n");
    let run = Run::at(&output.place).config("models/default.yaml", &blind).env("HTTP_PROXY", &proxy);
    let output = run.args(["run", "--continue", "more"]).run().success();
    assert!(!output.stderr.contains("does not take"), "{}", output.shown());
    assert!(!server.requests()[1].raw.contains("data:image"));
}
