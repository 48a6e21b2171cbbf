# Makes a small repository for the transcripts and goes there; read with `.`.
mkdir -p repository && cd repository
git() { command git -c user.name=Tester -c user.email=tester@example.org -c init.defaultBranch=main -c commit.gpgsign=false "$@"; }
export GIT_AUTHOR_DATE="2026-01-01T00:00:00Z" GIT_COMMITTER_DATE="2026-01-01T00:00:00Z"

base() {
    git init -q . && mkdir -p src tests
    printf 'fn main() {\n    println!("one");\n}\n' > src/main.rs
    printf '#[test]\nfn works() {\n    assert_eq!(1, 1);\n}\n' > tests/works.rs
    printf '[package]\nname = "x"\n' > Cargo.toml
    : > Cargo.lock
    git add src tests Cargo.* && git commit -qm "Begin"
}

branch() {
    git switch -qc feature
    { printf 'fn main() {\n'; for i in 1 2 3 4 5 6 7 8 9 10 11; do printf '    step(%s);\n' $i; done
      printf '    let x = read().unwrap();\n    dbg!(x);\n    let password = "hunter2-and-more";\n}\n'; } > src/main.rs
    printf 'CREATE TABLE t (id int);\n' > schema.sql
    printf 'serde = "1"\n' >> Cargo.toml
    git rm -q tests/works.rs
    git add src schema.sql Cargo.toml && git commit -qm "Change"
}
