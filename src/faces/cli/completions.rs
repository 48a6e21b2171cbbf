//! `agent completions SHELL` and `agent man`, generated from the same definitions as `--help`. The scripts ask for the
//! names of skills when one is completed, and treat them as data: a folder can have any name.

use super::{CommandOutcome, args, print_text};

/// The command that prints the names of skills, one per line.
const NAMES: &str = "agent skill list --names 2>/dev/null";

pub(super) fn print_completions(shell: args::Shell) -> CommandOutcome {
    let script = String::from_utf8_lossy(&args::write_completions(shell)).into_owned();
    print_text(match shell {
        args::Shell::Bash => in_bash(&script),
        args::Shell::Zsh => in_zsh(&script),
        args::Shell::Fish => in_fish(&script),
        _ => script,
    })
}

fn in_bash(script: &str) -> String {
    let names = format!(
        r#"_agent_with_skills() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" before=""
    (( COMP_CWORD > 1 )) && before="${{COMP_WORDS[COMP_CWORD-2]}}"
    if [[ "$prev" == --skill || "$before $prev" == "skill show" ]]; then
        # A name is data: compgen -W would expand it, and an unquoted one would be run when the line is.
        local name
        COMPREPLY=()
        while IFS= read -r name; do
            [[ "$name" == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$name")")
        done < <({NAMES})
    else
        _agent "$@"
    fi
}}

"#
    );
    names + &script.replace("complete -F _agent ", "complete -F _agent_with_skills ")
}

fn in_zsh(script: &str) -> String {
    let names = format!(
        "_agent_skill_names() {{\n    local -a names\n    names=(${{(f)\"$({NAMES})\"}})\n    compadd -a names\n}}\n"
    );
    let script = script.replace("SKILL:_default", "SKILL:_agent_skill_names");
    let script = script.replace(":skill:_default", ":skill:_agent_skill_names");
    match script.split_once('\n') {
        Some((first, rest)) => format!("{first}\n\n{names}{rest}"),
        None => script,
    }
}

fn in_fish(script: &str) -> String {
    let rule =
        |condition: &str, what: &str| format!("complete -c agent -n \"{condition}\" {what} -a \"({NAMES})\"\n");
    let using = "__fish_agent_using_subcommand";
    script.to_owned()
        + &rule(&format!("{using} chat; or {using} run"), "-l skill -x")
        + &rule(&format!("{using} skill; and __fish_seen_subcommand_from show"), "-f")
}
