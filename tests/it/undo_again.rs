//! What stands in the way of an undo or a redo: other names of a file, what cannot be put back, and what force overwrites.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::run::Run;
use crate::undo_files::{change, runs, session, workspace_with};

#[test]
fn a_file_gets_its_former_content_under_the_names_alone_that_it_had() {
    let files = [
        ("a", "AAA\n"),
        ("b", "BBB\n"),
        ("c", "CCC\n"),
        ("d", "DDD\n"),
        ("e", "EEE\n"),
        (".gitignore", "cache\n"),
    ];
    let place = workspace_with(&files);
    let root = place.workspace();
    fs::create_dir(root.join("cache")).expect("made");
    fs::write(root.join("cache/x"), "CACHED\n").expect("written");
    fs::hard_link(root.join("e"), root.join("f")).expect("linked");
    fs::set_permissions(root.join("b"), fs::Permissions::from_mode(0o444)).expect("set");
    change(&runs(&["ln -f b a; ln -f cache/x c; echo new > d; echo new > e; chmod 444 e"]), &place, &["do it"]);
    fs::hard_link(root.join("d"), root.join("d.bak")).expect("linked");
    session(&place, &["undo"]).success();
    let read = |names: [&str; 8]| names.map(|name| place.read(name)).join("");
    let names = ["a", "b", "c", "cache/x", "d", "d.bak", "e", "f"];
    assert_eq!(read(names), "AAA\nBBB\nCCC\nCACHED\nDDD\nnew\nEEE\nEEE\n");
    let stat = |name: &str| fs::metadata(root.join(name)).expect("there");
    assert_eq!((stat("b").mode() & 0o777, stat("e").mode() & 0o777), (0o444, 0o644));
    assert_eq!((stat("e").ino(), stat("e").nlink()), (stat("f").ino(), 2), "it stays one file");
    session(&place, &["redo"]).success();
    assert_eq!(read(names), "BBB\nBBB\nCACHED\nCACHED\nnew\nnew\nnew\nnew\n");
}

#[test]
fn an_undo_that_fails_in_part_keeps_its_message_and_does_the_rest_later() {
    let place = workspace_with(&[("a", "before\n"), ("x", "file\n"), (".gitignore", "built\n")]);
    let root = place.workspace();
    let server = runs(&["echo after > a; rm x; mkdir x kept; echo > x/built; echo > kept/built; echo > kept/y"]);
    change(&server, &place, &["do it"]);
    session(&place, &["undo"]).exits(1).reason_has("not put back: x: it holds").stderr_has("left: kept: it holds");
    assert_eq!(place.read("a"), "before\n");
    session(&place, &["redo"]).success();
    assert_eq!((place.read("a").as_str(), place.read("kept/y").as_str()), ("after\n", "\n"));
    session(&place, &["undo"]).exits(1);
    fs::remove_file(root.join("x/built")).expect("removed");
    session(&place, &["undo"]).success().stdout_is("do it\n");
    assert_eq!(
        (place.read("x").as_str(), place.exists("kept/y"), place.exists("kept/built")),
        ("file\n", false, true)
    );
    fs::remove_file(root.join("x")).expect("removed");
    session(&place, &["redo"]).success().stderr_has("has its messages again");
    assert_eq!(place.read("a"), "after\n");
}

#[test]
fn a_limit_of_file_sizes_leaves_every_file_whole() {
    let limited = Run::script("sh", "ulimit -f 256; exec agent session undo");
    let place = limited.place();
    let root = place.workspace();
    fs::write(root.join("small"), "before\n").expect("written");
    let large = "0123456789abcdef".repeat(20_000);
    for name in ["gone", "less", "one"] {
        fs::write(root.join(name), &large).expect("written");
    }
    fs::hard_link(root.join("one"), root.join("other")).expect("linked");
    change(&runs(&["rm gone; for f in less one small; do echo after > $f; done"]), &place, &["do it"]);
    limited.run().exits(1).reason_has("not put back: gone: File too large").reason_has("other: File too large");
    assert_eq!(
        ["less", "one", "other", "small"].map(|name| place.read(name)).join(""),
        "after\nafter\nafter\nbefore\n"
    );
    assert!(!place.exists("gone") && fs::read_dir(&root).expect("listed").count() == 4);
    session(&place, &["undo"]).success().stdout_is("do it\n");
    assert!(["gone", "less", "one", "other"].iter().all(|name| place.read(name) == large));
}

#[test]
fn what_a_forced_redo_overwrites_comes_back_with_the_next_undo() {
    let place = workspace_with(&[("a", "one\n"), ("b", "one\n")]);
    change(&runs(&["echo two > a; echo two > b"]), &place, &["do it"]);
    session(&place, &["undo"]).success();
    fs::write(place.workspace().join("a"), "PERSON\n").expect("written");
    session(&place, &["redo"]).exits(1).reason_has("changed since by something else: a");
    session(&place, &["redo", "--force"]).success();
    assert_eq!((place.read("a").as_str(), place.read("b").as_str()), ("two\n", "two\n"));
    session(&place, &["undo"]).success();
    assert_eq!((place.read("a").as_str(), place.read("b").as_str()), ("PERSON\n", "one\n"));
    session(&place, &["redo"]).success();
    assert_eq!(place.read("a"), "two\n");
}
