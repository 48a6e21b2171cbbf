//! The built-in skills as a model meets them: a line of the catalogue, the instructions, a reference, and the scripts,
//! run under the policy and inside the sandbox.

use std::fs;
use std::path::{Path, PathBuf};

use agent::facade::base::frontmatter;
use agent::facade::base::tokens;
use serde_json::json;

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server, assert_append_only, between_tags};

/// A skill loaded, one of its references read, and commands run; `SKILL` in a command is the skill's directory.
struct Walk {
    output: Output,
    requests: Vec<Request>,
}

impl Walk {
    fn through(skill: &'static str, reference: &'static str, commands: &'static [&str], run: Run) -> Self {
        let server = Server::answering(move |request, step| match step {
            0 => Reply::call("load_skill", &json!({"name": skill})),
            1 => Reply::call("load_skill_reference", &json!({"name": skill, "path": reference})),
            _ => match commands.get(step - 2) {
                Some(command) => {
                    let command = command.replace("SKILL", &directory(request));
                    Reply::call("run_command", &json!({"command": command}))
                }
                None => Reply::text("done"),
            },
        });
        let output = run.args(["run", "task", "--approve", "all"]).server(&server).run().success();
        let requests = server.requests();
        assert_eq!(requests.len(), commands.len() + 3);
        assert_append_only(&requests);
        Self { output, requests }
    }

    /// The output of the command with this index, as the model read it.
    #[track_caller]
    fn said(&self, index: usize) -> &str {
        between_tags(self.requests[index + 3].last_result())
    }

    /// The three phases: what is in the first, the second and the third request, and what is not there yet.
    #[track_caller]
    fn disclosed(&self, skill: &str, instruction: &str, reference: &str) {
        let text = fs::read_to_string(skills().join(skill).join("SKILL.md")).expect("built in");
        let description = field(&text, "description").expect("one line");
        let [first, second, third] = [&self.requests[0], &self.requests[1], &self.requests[2]];
        assert!(first.system().contains(&format!("- [○] {skill}: {description}\n")), "{}", first.system());
        assert!(!first.raw.contains(instruction) && second.last_result().contains(instruction));
        assert!(!second.raw.contains(reference) && third.last_result().contains(reference));
    }
}

fn skills() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("skills")
}

/// The head of a `SKILL.md`.
#[track_caller]
fn head(text: &str) -> &str {
    frontmatter::split_head(text).expect("it can be read").head.expect("it has a head")
}

/// A field of the head that stands on one line.
#[track_caller]
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    head(text).lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

/// The place of the skill's files according to `load_skill`.
fn directory(request: &Request) -> String {
    let (_, loaded) = request.tool_results()[0];
    let line = loaded.lines().find_map(|line| line.strip_prefix("Skill directory: "));
    line.expect("a built-in skill is unpacked").to_owned()
}

#[test]
fn code_review() {
    let run = Run::new().file("src/new.py", "def f(x):\n    return eval(x)\n");
    let walk = Walk::through(
        "code-review",
        "references/security.md",
        &["git init -q . && python3 SKILL/scripts/diff_summary.py"],
        run,
    );
    walk.disclosed(
        "code-review",
        "A finding needs a way to go wrong",
        "what can somebody who should not be trusted send",
    );
    let said = walk.said(0);
    assert!(said.starts_with("exit 0\neverything, as there is no commit yet: 1 file, +2 -0"), "{said}");
    assert!(said.contains("runs or trusts input: 1\n    src/new.py:2  return eval(x)"), "{said}");
}

#[test]
fn data_report() {
    let run = Run::new().file("销售.csv", "城市,金额\n北京,\"1,200\"\n上海,800\n北京,N/A\n");
    let walk = Walk::through(
        "data-report",
        "references/reading-figures.md",
        &[
            "python3 SKILL/scripts/summarize.py 销售.csv",
            "python3 SKILL/scripts/chart.py 销售.csv --x 城市 --y 金额 --out chart.svg",
            "python3 SKILL/scripts/chart.py 销售.csv --out ../outside.svg",
        ],
        run,
    );
    walk.disclosed("data-report", "Never estimate a figure by reading rows", "**Averages of averages** are wrong");
    assert!(walk.said(0).contains("min 800, max 1,200, mean 1,000, median 1,000, sum 2,000"), "{}", walk.said(0));
    assert!(walk.said(0).contains("1 missing (33.3%: `N/A` 1)"), "{}", walk.said(0));
    assert!(walk.said(1).contains("北京 │████████████████████████████████████ 1,200"), "{}", walk.said(1));
    assert!(walk.output.place.read("chart.svg").contains(">上海</text>"));
    assert!(walk.said(2).contains("error: ") && !walk.output.place.exists("../outside.svg"), "{}", walk.said(2));
}

#[test]
fn an_example_is_offered_once_it_was_written_out() {
    let offered = |run: Run| {
        let server = Server::start([Reply::text("done")]);
        run.args(["run", "task"]).server(&server).run().success();
        let request = server.only_request();
        request.system().contains("- [○] workspace-tour: ") && request.system().contains("book-flight")
    };
    let place = Run::new().args(["init"]).run().success().place;
    assert!(!offered(Run::at(&place)));
    Run::at(&place).args(["init", "--examples"]).run().success();
    assert!(offered(Run::at(&place)));
    // By its name a person loads it all the same.
    let server = Server::start([Reply::text("done")]);
    Run::task(&server, "task").args(["--skill", "book-flight"]).run().success();
    assert!(server.only_request().raw.contains("Only a clear yes to that message counts"));
}

#[test]
fn book_flight() {
    let place = Run::new().args(["init", "--examples"]).run().success().place;
    let walk = Walk::through(
        "book-flight",
        "references/fares-and-rules.md",
        &[
            "python3 SKILL/scripts/search_flights.py --to Tokyo",
            "python3 SKILL/scripts/search_flights.py --from 北京 --to 东京 --date tomorrow --adults 1 --cabin economy \
             --now 2026-03-02",
            "python3 SKILL/scripts/price_flight.py --flight SK101 --date tomorrow --adults 1 --cabin economy \
             --now 2026-03-02",
            "python3 SKILL/scripts/book_flight.py --flight SK101 --date tomorrow --adults 1 --cabin economy \
             --now 2026-03-02 --traveller LIN/YUE --quote \
             $(python3 SKILL/scripts/price_flight.py --flight SK101 --date tomorrow --adults 1 --cabin economy \
             --now 2026-03-02 | sed -n 's/^quote: \\(Q[0-9A-F]*\\).*/\\1/p')",
        ],
        Run::at(&place),
    );
    walk.disclosed(
        "book-flight",
        "Only a clear yes to that message counts",
        "A child (2 to 11 years on the day of the flight)",
    );
    assert!(
        walk.said(0).contains("missing: origin, date, number of adults, cabin. Ask the person"),
        "{}",
        walk.said(0)
    );
    assert!(walk.said(1).contains("- SK101 08:20 to 12:45"), "{}", walk.said(1));
    assert!(walk.said(2).contains("total: 2,050 CNY"), "{}", walk.said(2));
    let booked = walk.said(3).strip_prefix("exit 0\nBooked: ").unwrap_or_else(|| panic!("{}", walk.said(3)));
    let booking = walk.output.place.read(&format!("bookings/{}.json", &booked[..6]));
    assert!(booking.contains("\"LIN/YUE\"") && booking.contains("\"total\": 2050"), "{booking}");
    assert!(walk.said(3).contains("no airline is asked, nothing is bought"));
}

#[test]
fn all_keep_to_the_standard_and_to_their_size() {
    for entry in fs::read_dir(skills()).expect("built in") {
        let folder = entry.expect("an entry of the tree").path();
        let name = folder.file_name().expect("named").to_string_lossy().into_owned();
        let text = fs::read_to_string(folder.join("SKILL.md")).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(field(&text, "name"), Some(name.as_str()));
        let description = field(&text, "description").expect("one line");
        assert!(description.len() <= 1024 && description.contains("Use "), "{name} says what it does and when");
        let known = ["name", "description", "license", "compatibility", "  example"];
        let keys = head(&text).lines().filter_map(|line| line.split_once(": ")).map(|(key, _)| key);
        assert!(keys.clone().all(|key| known.contains(&key)), "{name}: {:?}", keys.collect::<Vec<_>>());
        let size = tokens::count_tokens(&text);
        assert!(text.lines().count() < 500 && size < 5000, "{name}: {size} tokens");
        for mentioned in text.split(['`', ' ', '\n']).map(|word| word.trim_start_matches("SKILL/")) {
            if ["references/", "scripts/", "assets/"]
                .iter()
                .any(|dir| mentioned.starts_with(dir) && mentioned != *dir)
            {
                assert!(folder.join(mentioned).is_file(), "{name} names {mentioned}, which does not exist");
            }
        }
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let scripts = fs::read_dir(folder.join("scripts")).map(Iterator::count).unwrap_or_default();
        assert!(scripts == 0 || plain.contains("If `python3` is not found"), "{name} says what it needs");
    }
}
