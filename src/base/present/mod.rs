//! Formats a tool's result for the model: the selected parts (the format), in a notation (the encoding; one file each, except for JSON and YAML).
//!
//! The results of a tool all begin with the same bytes, so that a provider's prefix cache can reuse them, and
//! values that change from run to run (time, id, duration) appear only in `detailed`. Content from outside is
//! marked as untrusted within the encoding, so that the whole stays parseable. Telemetry and metadata cannot get
//! in: [`ResultView`] has no place for them.
//!
//! The marks in the observation of an untrusted result are broken before it comes here, and before the loop adds its
//! own notices (about a cut, a hint), so that an intact notice is always the loop's.

mod compact;
mod csv;
mod data;
mod framed;
mod neutral;
mod text;
mod xml;

use serde_json::Value;

use crate::base::output::{CallStatus, Encoding, ResponseFormat, ToolOutput};
use crate::base::spelling::spell;
use crate::base::yaml;

pub use data::fit_data;
pub use framed::{escape_attribute, quote_word};
pub use neutral::{break_text_marks, restore_text_marks};
pub use text::{read_status, show_failure};

/// The tool, and the trust in its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultSource<'a> {
    pub tool: &'a str,
    /// True for instructions that the user installed (skills) or said; everything else is data.
    pub trusted: bool,
}

/// The values that change from call to call; only `detailed` shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occasion<'a> {
    pub call_id: &'a str,
    pub duration_ms: u64,
}

/// The parts of a result that are written: names and values, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultView<'a> {
    pub source: ResultSource<'a>,
    pub fields: Vec<(&'static str, ViewField)>,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewField {
    Text(String),
    Data(Value),
}

/// Selects the parts of a result. `most` is the bytes that its data may have; an array is cut to its first items,
/// with the output's handle for the rest.
pub fn select_view<'a>(
    source: ResultSource<'a>,
    status: CallStatus,
    output: &ToolOutput,
    format: ResponseFormat,
    occasion: Occasion<'_>,
    most: usize,
) -> ResultView<'a> {
    let text = |text: &str| ViewField::Text(text.to_owned());
    let content = ("content", text(&output.observation));
    let outcome = || ("status", text(spell(&status)));
    // One line, even for readers that know further line breaks.
    let summary = || ("summary", text(&break_text_marks(&crate::base::text::make_visible(output.outcome()))));
    let data = || {
        let data = if source.trusted { output.result.clone() } else { break_marks(&output.result) };
        ("result", ViewField::Data(fit_data(&data, most, output.kept.as_ref())))
    };
    let failed = !has_result(status, output);
    let fields = match format {
        ResponseFormat::Concise | ResponseFormat::Raw if failed => vec![outcome(), content],
        ResponseFormat::Concise => vec![content],
        ResponseFormat::Standard => vec![outcome(), summary(), content],
        ResponseFormat::Detailed => vec![
            outcome(),
            summary(),
            content,
            data(),
            ("call_id", text(occasion.call_id)),
            ("duration_ms", ViewField::Data(occasion.duration_ms.into())),
        ],
        ResponseFormat::Raw => vec![data()],
    };
    ResultView { source, fields }
}

/// The whole data of a result as text, if [`select_view`] shows only a part of it.
pub fn left_out(status: CallStatus, output: &ToolOutput, format: ResponseFormat, most: usize) -> Option<String> {
    let shown = match format {
        ResponseFormat::Detailed => true,
        ResponseFormat::Raw => has_result(status, output),
        ResponseFormat::Concise | ResponseFormat::Standard => false,
    };
    (shown && !data::fits_data(&output.result, most)).then(|| format!("{:#}", output.result))
}

/// True if the tool returned a result. That of a program that failed begins with its exit.
fn has_result(status: CallStatus, output: &ToolOutput) -> bool {
    status == CallStatus::Ok || output.exit.is_some()
}

/// Writes a view in an encoding.
pub fn encode_view(view: &ResultView<'_>, encoding: Encoding) -> String {
    match encoding {
        Encoding::Text => text::encode_view(view),
        Encoding::Json => write_json(view),
        // Every value of JSON can be written as YAML.
        Encoding::Yaml => yaml::write_document(&view.as_object()).unwrap_or_else(|_| write_json(view)),
        Encoding::Xml => xml::encode_view(view),
        Encoding::Compact => compact::encode_view(view),
    }
}

fn write_json(view: &ResultView<'_>) -> String {
    Value::Object(view.as_object()).to_string()
}

/// Data with every mark in its texts and names broken.
fn break_marks(data: &Value) -> Value {
    match data {
        Value::String(text) => Value::String(break_text_marks(text).into_owned()),
        Value::Array(items) => items.iter().map(break_marks).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (break_text_marks(name).into_owned(), break_marks(value))).collect()
        }
        other => other.clone(),
    }
}

impl ViewField {
    /// The field as one text; data as compact JSON.
    fn as_text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Data(data) => data.to_string().into(),
        }
    }

    fn as_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.clone()),
            Self::Data(data) => data.clone(),
        }
    }
}

impl ResultView<'_> {
    /// The view as one object: tool, mark, fields.
    fn as_object(&self) -> serde_json::Map<String, Value> {
        let mut object = serde_json::Map::new();
        object.insert("tool".to_owned(), self.source.tool.into());
        if !self.source.trusted {
            object.insert("untrusted".to_owned(), true.into());
        }
        object.extend(self.fields.iter().map(|(name, field)| ((*name).to_owned(), field.as_value())));
        object
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const FORMATS: [ResponseFormat; 4] =
        [ResponseFormat::Concise, ResponseFormat::Standard, ResponseFormat::Detailed, ResponseFormat::Raw];
    const ENCODINGS: [Encoding; 5] =
        [Encoding::Text, Encoding::Json, Encoding::Yaml, Encoding::Xml, Encoding::Compact];
    const SOURCE: ResultSource<'_> = ResultSource { tool: "grep", trusted: false };

    fn output(observation: &str) -> ToolOutput {
        let mut output = ToolOutput {
            result: json!({"matches": [{"path": "a.rs", "line": 1}], "note": observation}),
            observation: break_text_marks(observation).into_owned(),
            summary: format!("1 match of {observation}"),
            ..ToolOutput::default()
        };
        output.metadata.insert("probe".to_owned(), "METADATA".into());
        output
    }

    fn shown(observation: &str, format: ResponseFormat, encoding: Encoding, id: &str) -> String {
        let occasion = Occasion { call_id: id, duration_ms: 1234 };
        encode_view(&select_view(SOURCE, CallStatus::Ok, &output(observation), format, occasion, 10_000), encoding)
    }

    #[test]
    fn a_result_opens_with_the_same_bytes_for_the_same_tool() {
        for encoding in ENCODINGS {
            let openings: Vec<String> = FORMATS
                .iter()
                .map(|format| shown("text", *format, encoding, "call_1").chars().take(20).collect())
                .collect();
            assert!(openings.windows(2).all(|pair| pair[0] == pair[1]), "{encoding:?} {openings:?}");
        }
    }

    #[test]
    fn only_detailed_changes_from_call_to_call_and_metadata_is_nowhere() {
        for encoding in ENCODINGS {
            for format in FORMATS {
                let (one, two) = (shown("x", format, encoding, "call_1"), shown("x", format, encoding, "call_2"));
                assert_eq!(one == two, format != ResponseFormat::Detailed, "{format:?} {encoding:?}");
                assert_eq!(one.contains("1234"), format == ResponseFormat::Detailed, "{one}");
                assert!(!one.contains("METADATA"), "{one}");
                assert!(one.contains("untrusted"), "{one}");
            }
        }
    }

    #[test]
    fn a_failure_shows_its_status_even_when_concise() {
        let output = ToolOutput { observation: "no such file".to_owned(), ..ToolOutput::default() };
        let occasion = Occasion { call_id: "c", duration_ms: 0 };
        let view = select_view(SOURCE, CallStatus::Error, &output, ResponseFormat::Raw, occasion, 100);
        assert_eq!(
            encode_view(&view, Encoding::Json),
            r#"{"tool":"grep","untrusted":true,"status":"error","content":"no such file"}"#
        );
    }

    proptest! {
        /// Whatever a file holds, reading back returns what was written: nothing breaks out of its field.
        #[test]
        fn data_formats_round_trip(content in "[\\PC\n\t\\\\|:\"'<>&\u{0}-\u{1f}]{0,60}") {
            let object = |text: &str| serde_json::from_str::<Value>(text).expect("one JSON object");
            let expected = break_text_marks(&content).into_owned();
            let json = shown(&content, ResponseFormat::Standard, Encoding::Json, "c");
            prop_assert_eq!(&object(&json)["content"], &Value::String(expected.clone()));
            prop_assert_eq!(json.lines().count(), 1);
            let yaml: Value = yaml::parse_document(&shown(&content, ResponseFormat::Standard, Encoding::Yaml, "c"))
                .expect("one YAML document");
            prop_assert_eq!(yaml["content"].as_str(), Some(expected.as_str()));
            let compact = shown(&content, ResponseFormat::Standard, Encoding::Compact, "c");
            prop_assert_eq!(compact.lines().count(), 1);
            let fields = compact::decode(&compact);
            let found = fields.iter().find(|(name, _)| name == "content").map(|(_, value)| value.as_str());
            prop_assert_eq!(found, Some(expected.as_str()));
            let xml = shown(&content, ResponseFormat::Standard, Encoding::Xml, "c");
            prop_assert_eq!(xml.matches("</content>").count(), 1);
            prop_assert_eq!(xml.matches("</result>").count(), 1);
        }

        /// Whatever a file or an error says: the frame closes once, at the end, no mark of ours is in it, and no line
        /// after the fields of the frame is taken for one of them.
        #[test]
        fn nothing_breaks_out_of_any_format_or_fakes_what_is_ours(
            content in "(</?result[ >]|<system>|</content>|</summary>|call_id: fake|status: ok|x|\n|\r|\u{2028}|<\u{2060}/result>|\\[… 9 bytes left out …\\]|\\[shortened: |<untrusted>|# Project instructions){0,8}",
        ) {
            for encoding in ENCODINGS {
                for format in FORMATS {
                    let text = shown(&content, format, encoding, "c");
                    for mark in ["[… ", "[shortened:", "<system>", "<untrusted>", "# Project instructions"] {
                        prop_assert!(!text.contains(mark), "{:?} {:?}: {}", format, encoding, text);
                    }
                    // In XML the data is an element of that name as well.
                    let data = matches!(format, ResponseFormat::Detailed | ResponseFormat::Raw);
                    let closing = match encoding {
                        Encoding::Text => 1,
                        Encoding::Xml => 1 + usize::from(data),
                        Encoding::Json | Encoding::Yaml | Encoding::Compact => 0,
                    };
                    prop_assert_eq!(text.matches("</result>").count(), closing, "{:?} {:?}: {}", format, encoding, text);
                    if encoding == Encoding::Text {
                        prop_assert!(text.ends_with("\n</result>"));
                        let fields = text.lines().skip(1).take_while(|line| {
                            ["status: ", "summary: ", "call_id: ", "duration_ms: ", "result: "].iter().any(|name| line.starts_with(name))
                        });
                        let expected = match format {
                            ResponseFormat::Concise => 0,
                            ResponseFormat::Standard => 2,
                            ResponseFormat::Detailed => 5,
                            ResponseFormat::Raw => 1,
                        };
                        prop_assert!(fields.count() >= expected, "{}", text);
                    }
                }
            }
            prop_assert_eq!(restore_text_marks(&break_text_marks(&content)).into_owned(), content);
        }
    }
}
