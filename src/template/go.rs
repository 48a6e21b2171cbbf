//! Templates like Go's `text/template`: parsed by gotmpl, whose renderer lacks our limits and the places of errors; so
//! the parsed template is rendered here, with values like Jinja's.

mod tags;
mod values;
mod functions;
mod names;
mod run;
mod evaluate;

use std::collections::{BTreeMap, BTreeSet};

use gotmpl::parse::{ListNode, Parser};
use minijinja::Value;

use super::Undefined;
use super::error::TemplateError;

/// A compiled template.
#[derive(Debug)]
pub(super) struct GoTemplate {
    source: String,
    tree: GoTree,
    variables: BTreeSet<String>,
    undefined: Undefined,
}

/// The parsed template, and the templates that it defines.
#[derive(Debug)]
struct GoTree {
    root: ListNode,
    defined: BTreeMap<String, ListNode>,
}

/// An error with the byte of the source that it concerns.
struct GoProblem {
    at: usize,
    message: String,
}

impl GoTemplate {
    pub(super) fn compile(source: &str, undefined: Undefined) -> Result<Self, TemplateError> {
        let problem =
            |problem: GoProblem| TemplateError::place_at(source, problem.at..problem.at + 1, problem.message);
        tags::check_tags(source).map_err(problem)?;
        let (root, bodies) = Parser::new(&tags::mend_comments(source), "{{", "}}")
            .and_then(Parser::parse)
            .map_err(|error| problem(GoProblem { at: find_place(source, &error), message: word_error(error) }))?;
        let mut defined = BTreeMap::new();
        for define in bodies {
            let name = define.name.to_string();
            // An empty definition never replaces another one.
            let is_empty = define.body.is_empty_tree();
            if defined.get(&name).is_none_or(ListNode::is_empty_tree) {
                defined.insert(name, define.body);
            } else if !is_empty {
                let message = format!("`{name}` is defined twice");
                return Err(problem(GoProblem { at: define.pos.offset, message }));
            }
        }
        let tree = GoTree { root, defined };
        let variables = names::read_names(&tree).map_err(problem)?;
        Ok(Self { source: source.to_owned(), tree, variables, undefined })
    }

    pub(super) fn render(&self, context: &Value) -> Result<String, TemplateError> {
        let run = run::GoRun::new(&self.tree, self.undefined);
        run.render(context).map_err(|end| {
            let error =
                TemplateError::place_at(&self.source, end.problem.at..end.problem.at + 1, end.problem.message);
            if end.missing.is_empty() { error } else { error.add_missing(end.missing.into_iter().collect()) }
        })
    }

    pub(super) fn variables(&self) -> BTreeSet<String> {
        self.variables.clone()
    }
}

/// The byte at which the parser stopped.
fn find_place(source: &str, error: &gotmpl::TemplateError) -> usize {
    let (gotmpl::TemplateError::Parse { line, col, .. } | gotmpl::TemplateError::Lex { line, col, .. }) = error
    else {
        return 0;
    };
    let before: usize = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = &source[before..];
    before + rest.char_indices().nth(col.saturating_sub(1)).map_or(rest.len(), |(at, _)| at)
}

fn word_error(error: gotmpl::TemplateError) -> String {
    match error {
        gotmpl::TemplateError::Parse { message, .. } | gotmpl::TemplateError::Lex { message, .. } => message,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::template::{Syntax, Template, TemplateError, Undefined, convert_value};

    fn render(source: &str) -> Result<String, TemplateError> {
        let data =
            json!({"name": "Ann", "user": {"id": 7}, "xs": ["a", "b"], "raw": "{{.name}}", "nothing": null});
        Template::compile_as(Syntax::GoTemplate, "t", source, Undefined::Error)?.render(&convert_value(&data))
    }

    #[test]
    fn a_value_is_never_rendered_again() {
        assert_eq!(render("{{.raw}} {\"a\": {}}").as_deref(), Ok("{{.name}} {\"a\": {}}"));
    }

    #[test]
    fn all_missing_names_are_told_at_once() {
        for (source, expected) in [
            ("{{.one}}{{.user.two}}{{len .three}}{{.four.five}}", vec!["four.five", "one", "three", "user.two"]),
            ("{{range .xs}}{{$.one}}{{end}}{{with .user}}{{.two}}{{end}}", vec!["one", "user.two"]),
            ("{{if .one}}{{.two}}{{else}}{{.three}}{{end}}", vec!["one", "three"]),
            (
                "{{$u := .user}}{{$u.one}}{{template \"t\" .user}}{{define \"t\"}}{{.two}}{{end}}",
                vec!["user.one", "user.two"],
            ),
        ] {
            let error = render(source).expect_err(source);
            assert_eq!(error.missing, expected, "{source}: {error}");
            assert_eq!(error.message, format!("nothing defines {}", expected.join(", ")));
        }
    }

    #[test]
    fn errors_have_their_place_and_their_line() {
        for (source, line, column, message) in [
            ("a\n{{.name", 2, 8, "unclosed action"),
            ("a\n{{ .name | upper }}", 2, 12, "there is no function `upper`"),
            ("a\n{{len .user.id}}", 2, 3, "a value of type int has no length"),
            ("a\nb {{.none}}", 2, 5, "nothing defines none"),
            ("{{if .name}}a", 1, 1, "no `{{end}}` closes this `{{if}}`"),
            ("a{{end}}", 1, 2, "this `{{end}}` closes nothing"),
            ("{{$x}}", 1, 3, "no variable `$x` is declared here"),
            ("{{template \"x\"}}", 1, 3, "no template `x` is defined"),
            ("{{call .name}}", 1, 3, "`call` is not supported"),
            ("{{break}}", 1, 1, "`{{break}}` belongs into `{{range}}`"),
            ("{{.nothing.x}}", 1, 3, "`nothing.x` is nil up to `.x`"),
        ] {
            let error = render(source).expect_err(source);
            assert!(error.message.starts_with(message), "{source}: {error}");
            assert_eq!((error.line, error.column), (Some(line), Some(column)), "{source}: {error}");
            assert_eq!(error.excerpt.as_deref(), source.lines().nth(line - 1), "{source}");
        }
    }

    #[test]
    fn the_sandbox_holds() {
        let doubled = format!("{{{{$x := \"aaaaaaaa\"}}}}{}", "{{$x = printf \"%s%s\" $x $x}}".repeat(40));
        let wide = format!("{{{{printf \"{}\" {}}}}}", "%65535d".repeat(3000), "1 ".repeat(3000));
        let starred = format!("{{{{printf \"{}\" {}}}}}", "%*d".repeat(3000), "65535 1 ".repeat(3000));
        for (source, expected) in [
            ("{{range 9999999999}}{{end}}", "it runs too long"),
            ("{{range 9999}}{{range 9999}}{{end}}{{end}}", "it runs too long"),
            (
                "{{range 9999999}}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{end}}",
                "its result is longer than 1024 KiB",
            ),
            ("{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}", "it goes more than 100 levels deep"),
            (
                "{{define \"a\"}}{{if lt (len .) 40}}{{template \"a\" (print . \"x\")}}{{template \"a\" (print . \"x\")}}\
                 {{end}}{{end}}{{template \"a\" \"\"}}",
                "it runs too long",
            ),
            (&doubled, "a value is longer than 1024 KiB"),
            (&wide, "a value is longer than 1024 KiB"),
            (&starred, "a value is longer than 1024 KiB"),
            (&"{{if .name}}".repeat(5000), "no `{{end}}` closes this"),
            (
                &format!("{{{{if .name}}}}{}{{{{end}}}}", "{{else if .name}}".repeat(5000)),
                "a template has at most 100",
            ),
            (&format!("{{{{{}1{}}}}}", "(".repeat(5000), ")".repeat(5000)), "template nesting depth exceeded 100"),
        ] {
            let error = render(source).expect_err(source);
            assert!(error.message.starts_with(expected), "{}: {error}", &source[..source.len().min(100)]);
        }
        assert_eq!(render("{{printf \"%9999999d\" 1 | len}}").as_deref(), Ok("65535"));
    }

    #[test]
    fn the_names_that_it_reads_are_known() {
        let source = "{{.a.b}}{{with .c}}{{.d}}{{$.e}}{{end}}{{range $i, $x := .f}}{{$x.y}}{{.z}}{{end}}{{index . \"g\" \"h\"}}\
                      {{$v := .i}}{{$v.j}}{{template \"t\" .k}}{{define \"t\"}}{{.l}}{{end}}{{if and .m (not .n)}}{{end}}";
        let template = Template::compile_as(Syntax::GoTemplate, "t", source, Undefined::Error).expect("valid");
        let names: Vec<String> = template.variables().into_iter().collect();
        assert_eq!(names, ["a.b", "c", "c.d", "e", "f", "g", "g.h", "i", "i.j", "k", "k.l", "m", "n"]);
    }
}
