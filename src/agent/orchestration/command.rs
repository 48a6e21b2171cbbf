//! References in a command line: they become environment variables, so no value is ever part of the text.
//!
//! A shell reads the line, so quotes matter: a variable outside quotes is quoted to keep its value one word; between
//! single quotes a shell would not expand it, which is a mistake in the plan. So is one in what another program reads as code.

use super::code::{find_quote, judge_place, push_variable};
use super::reference::{Reference, ReferencePiece, Results, as_text, split_pieces};

/// The longest value of an environment variable. Linux takes 128 KiB, with the name and the closing zero.
pub(super) const MOST_VARIABLE_BYTES: usize = 130_000;

/// Replaces the references of a command line with environment variables. Returns the line, and the variables with their
/// values as text.
///
/// A variable outside quotes is quoted, so its value stays one word.
///
/// # Errors
/// A sentence that names the first reference without a value, or one that a shell would not expand.
pub fn for_command(line: &str, results: &Results<'_>) -> Result<(String, Vec<(String, String)>), String> {
    let mut names: Vec<(Reference, String)> = Vec::new();
    let mut variables = Vec::new();
    let mut command = String::with_capacity(line.len());
    for piece in split_pieces(line) {
        match piece {
            ReferencePiece::Text(text) | ReferencePiece::Mistake(text) => command.push_str(text),
            ReferencePiece::Reference(reference) => {
                if let Some(why) = find_misplacement(&reference, &command, line) {
                    return Err(why);
                }
                // A value that stood elsewhere as data may be none here.
                let value = as_text(reference.value(results)?);
                if let Some(why) = judge_place(&command, line).find_danger(Some(&value)) {
                    return Err(format!("`{reference}` {why}"));
                }
                let known = names.iter().find(|(known, _)| *known == reference).map(|(_, name)| name.clone());
                let name = match known {
                    Some(name) => name,
                    None => {
                        fits_a_variable(&reference, &value)?;
                        let name = name_variable(&reference, &variables);
                        variables.push((name.clone(), value));
                        names.push((reference, name.clone()));
                        name
                    }
                };
                push_variable(&mut command, &name);
            }
        }
    }
    Ok((command, variables))
}

/// Finds the references that stand where a shell does not expand them, or where they would be code.
pub fn find_misplaced(line: &str) -> Vec<String> {
    let mut before = String::new();
    let mut misplaced = Vec::new();
    for piece in split_pieces(line) {
        match piece {
            ReferencePiece::Text(text) | ReferencePiece::Mistake(text) => before.push_str(text),
            ReferencePiece::Reference(reference) => {
                misplaced.extend(find_misplacement(&reference, &before, line));
                before.push('_');
            }
        }
    }
    misplaced
}

fn find_misplacement(reference: &Reference, before: &str, line: &str) -> Option<String> {
    if find_quote(before) == Some('\'') {
        return Some(format!(
            "`{reference}` stands between single quotes, or under a quoted `<<` word, where a shell puts in no value; \
             use double quotes, or none"
        ));
    }
    judge_place(before, line).find_danger(None).map(|why| format!("`{reference}` {why}"))
}

fn fits_a_variable(reference: &Reference, value: &str) -> Result<(), String> {
    if value.contains('\0') {
        return Err(format!("`{reference}` holds a zero byte, which no environment variable can"));
    }
    if value.len() > MOST_VARIABLE_BYTES {
        return Err(format!(
            "`{reference}` has {} bytes, and an environment variable takes {MOST_VARIABLE_BYTES}; refer to a part \
             of it, or write it to a file first",
            value.len()
        ));
    }
    Ok(())
}

/// An unused name for the variable of a reference.
fn name_variable(reference: &Reference, variables: &[(String, String)]) -> String {
    let name = reference.variable();
    let is_free = |name: &String| variables.iter().all(|(taken, _)| taken != name);
    let numbered = (2..).map(|number| format!("{name}__{number}"));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn values() -> [(u32, Value); 2] {
        [(1, json!({ "path": "a b; rm -rf /", "n": 3, "a-b": "x", "a b": "y" })), (2, json!("$(id)"))]
    }

    fn results(values: &[(u32, Value)]) -> Results<'_> {
        values.iter().map(|(step, value)| (*step, value)).collect()
    }

    #[test]
    fn references_become_variables() {
        for (line, command, variables) in [
            ("ls -l", "ls -l", &[][..]),
            (
                "cat $step_1_result.path",
                "cat \"${step_1_result_path}\"",
                &[("step_1_result_path", "a b; rm -rf /")],
            ),
            (
                "cat \"$step_1_result.path\".txt",
                "cat \"${step_1_result_path}\".txt",
                &[("step_1_result_path", "a b; rm -rf /")],
            ),
            (
                "echo $step_1_result.n $step_1_result.n",
                "echo \"${step_1_result_n}\" \"${step_1_result_n}\"",
                &[("step_1_result_n", "3")],
            ),
            (
                "echo $step_1_result[\"a-b\"] $step_1_result[\"a b\"]",
                "echo \"${step_1_result_a_b}\" \"${step_1_result_a_b__2}\"",
                &[("step_1_result_a_b", "x"), ("step_1_result_a_b__2", "y")],
            ),
            (
                "echo 'it'\"'\"'s' $step_2_result",
                "echo 'it'\"'\"'s' \"${step_2_result}\"",
                &[("step_2_result", "$(id)")],
            ),
            ("echo \\' $step_2_result", "echo \\' \"${step_2_result}\"", &[("step_2_result", "$(id)")]),
            (
                "cat <<EOF\nit's $step_2_result\nEOF",
                "cat <<EOF\nit's ${step_2_result}\nEOF",
                &[("step_2_result", "$(id)")],
            ),
            (
                "echo \"$(cat $step_1_result.path)\" \"\\$(\" $step_1_result.path",
                "echo \"$(cat \"${step_1_result_path}\")\" \"\\$(\" \"${step_1_result_path}\"",
                &[("step_1_result_path", "a b; rm -rf /")],
            ),
            (
                "echo $((1 + $step_1_result.n)) $step_1_result.n",
                "echo $((1 + ${step_1_result_n})) \"${step_1_result_n}\"",
                &[("step_1_result_n", "3")],
            ),
            ("echo $HOME $step", "echo $HOME $step", &[]),
        ] {
            let (found, given) = for_command(line, &results(&values())).expect("all is there");
            assert_eq!(found, command, "{line}");
            let given: Vec<(&str, &str)> =
                given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(given, variables, "{line}");
        }
    }

    #[test]
    fn only_the_body_of_a_here_document_takes_a_value_without_quotes() {
        const V: &str = "$step_2_result";
        let number = [(2, json!(3))];
        for (line, is_quoted) in [
            ("cat <<EOF > n\nremoved\nEOF\nrm -f V", true),
            ("cat > n <<EOF\nold\nEOF\nmv V n", true),
            ("cat <<A <<-'B C'; cat V\na\nA\nb", true),
            ("cat <<A <<-'B C'\na\nA\nit's\n\tB C\nrm V", true),
            ("cat <<EOF\n$(rm V)\nEOF", true),
            ("cat <<EOF\nEOFx it's # V\nEOF", false),
            ("echo $((1<<2)); rm -f V", true),
            ("echo $(( (1 + V) ))", false),
            ("echo $(( 1 + $(cat V) ))", true),
            ("((x = 1<<2))\nrm V", true),
            ("read -r x <<< a; rm -f -- V", true),
            ("read -r x <<< a\nrm V", true),
            ("cat f # 5\" disk\nrm -f V", true),
            ("# it's\necho V", true),
            ("echo a#\" b\" V ${#x} V", true),
        ] {
            let (found, _) = for_command(&line.replace('V', V), &results(&number)).expect(line);
            let written = if is_quoted { "\"${step_2_result}\"" } else { "${step_2_result}" };
            assert_eq!(found, line.replace('V', written));
        }
        let quoted = "cat <<'EOF'\nit's $step_2_result\nEOF";
        assert!(for_command(quoted, &results(&number)).is_err());
    }

    #[test]
    fn a_value_that_is_code_is_found_however_the_program_is_written() {
        for line in [
            "cat f # 5\" disk\nbash -c V",
            "bash \\\n-c V",
            "bash -cx V",
            "bash -co pipefail V",
            "bash -ceu V",
            "function f { bash -c V; }; f",
            "coproc X { bash -c V; }",
            "taskset 1 bash -c V",
            "setarch x86_64 bash -c V",
            "$SHELL -c V",
            "$b -c V",
            "`which sh` -c V",
            "$'bash' -c V",
            "bash $'-c' V",
            "bash $'\\x2dc' V",
            "python3 -cV",
            "perl -eV",
            "node --eval=V",
            "sed -f /dev/stdin f <<< V",
            "awk -f - <<< V",
            "PS4=V bash -x a",
            "git config alias.z V",
            "make --eval=V",
            "split --filter V",
            "sqlite3 :memory: <<< V",
            "vim -es -c V",
            "ed -s f <<< V",
            "alias z=V",
            "git fetch --upload-pack V",
            "bash <<E\n$(echo V)\nE",
            "sqlite3 :memory: V",
            "make CC=V",
            "git clone -u V a",
            "vim +V f",
            "docker exec c sh -c V",
            "psql -c V",
            "tmux send-keys V Enter",
            "eval \"$(echo V)\"",
            "bash -c \"`echo V`\"",
            "$(echo V) a",
            "x=1 $(echo V)",
            "python3 -c \"import os; os.system('$(for i in 1; do echo V; done)')\"",
        ] {
            let why = for_command(&line.replace('V', "$step_2_result"), &results(&values())).expect_err(line);
            assert!(why.contains("would be read as code"), "{why}");
        }
        for line in [
            "bash -x a.sh V", "bash -eo pipefail a.sh V", "$HOME/bin/tool V", "find . -name 'x' { V",
            "taskset 1 grep -c V", "sed -f a.sed f <<< V", "git config user.name V", "make -j2 V", "split -l 9 V",
            "vim V", "x=$HOME; echo V", "python3 -m py_compile V", "printf '%s' \"$x\" V",
            "cat <<E | wc\nbash -c V\nE", "env A=$B grep V f", "sqlite3 V .tables", "git clone V",
            "x=$(echo V) ls", "sh -c 'ls' _ \"$(echo V)\"", "ls \"$(dirname V)\"", "diff <(sort V) f",
            "(cd a; ls V)", "docker run V",
        ] {
            for_command(&line.replace('V', "$step_2_result"), &results(&values())).expect(line);
        }
    }

    #[test]
    fn what_a_shell_would_not_see_or_take_is_an_error() {
        let long = [(1, json!("x".repeat(130_001))), (2, json!("a\0b"))];
        for (line, values, part) in [
            ("echo '$step_1_result.n'", &values()[..], "`$step_1_result.n` stands between single quotes"),
            ("echo $step_1_result", &long, "has 130001 bytes, and an environment variable takes 130000"),
            ("echo $step_2_result", &long, "holds a zero byte"),
            ("echo $step_7_result", &values()[..], "step 7 has no result"),
        ] {
            let why = for_command(line, &results(values)).expect_err(line);
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(find_misplaced("echo '$step_1_result' \"$step_2_result\"").len(), 1);
    }

    #[test]
    fn a_value_that_would_be_code_is_refused() {
        for line in [
            "bash -c \"echo $step_2_result\"",
            "cd x && timeout 5 /bin/sh -ec $step_2_result",
            "ls | xargs sh -c \"rm $step_2_result\"",
            "eval \"a=$step_2_result\"",
            "python3 -c \"print('$step_2_result')\"",
            "ssh host \"ls $step_2_result\"",
            "bash -s <<EOF\necho $step_2_result\nEOF",
            "cat <<EOF | bash\necho $step_2_result\nEOF",
            "bash -o pipefail -c -- \"echo $step_2_result\"",
            "node --eval \"$step_2_result\"",
            "find . -exec sh -c \"rm $step_2_result\" {} +",
            "source <(echo $step_2_result)",
            "if ls; then ls; else sudo bash -c \"echo $step_2_result\"; fi",
            "flock f -c \"echo $step_2_result\"",
            "command eval $step_2_result",
            "timeout -k 1 5 builtin eval $step_2_result",
            "find . -exec ssh $step_2_result {} +",
            "xargs -I{} sh -c {} <<< $step_2_result",
            "xargs -n1 sh -c <<< $step_2_result",
            "compgen -C $step_2_result",
            "mapfile -C $step_2_result -c 1 x < a",
            "git -C x -c alias.z='!'$step_2_result z",
            "git grep -O$step_2_result a",
            "GIT_CONFIG_VALUE_0=$step_2_result git z",
            "GIT_EXTERNAL_DIFF=$step_2_result git diff",
            "env LD_PRELOAD=./$step_2_result ls",
            "tar cf a.tar a --checkpoint=1 --checkpoint-action=exec=$step_2_result",
            "tar xf a.tar --to-command $step_2_result",
            "tar xf a.tar --use-compress-prog=$step_2_result",
            "perl -I lib -e $step_2_result",
            "python3 -W ignore -c $step_2_result",
            "bash --rcfile a -c $step_2_result",
            "sh 2>/dev/null -c $step_2_result",
            "> out sh -c $step_2_result",
            "case x in x) sh -c $step_2_result ;; esac",
            "f() { sh -c $step_2_result; }; f",
            "FOO=$(date) sh -c $step_2_result",
            "sh -c $(cat a)$step_2_result",
            "echo \"$(sh -c $step_2_result)\"",
            "echo `sh -c $step_2_result`",
            "env -S $step_2_result",
        ] {
            let why = for_command(line, &results(&values())).expect_err(line);
            assert!(why.contains("would be read as code"), "{why}");
            assert_eq!(find_misplaced(line).len(), 1, "{line}");
        }
    }

    #[test]
    fn a_value_that_is_data_is_taken_and_in_an_expression_only_a_plain_one() {
        for line in [
            "bash -c 'echo \"$1\"' _ $step_2_result",
            "bash run.sh \"$step_2_result\"",
            "grep -e \"$step_2_result\" a",
            "sh -c 'ls'; echo \"$step_2_result\"",
            "grep -rn eval $step_2_result .",
            "python3 s.py -e $step_2_result",
            "awk -v x=$step_2_result '{ print x }' f",
            "sed -n 1p $step_2_result",
            "cat > README.md <<EOF\nRun it with bash or python:\n$step_2_result\nEOF",
            "[[ $step_2_result == x ]] && echo same",
            "test $step_2_result -gt 3",
            "find . -name . -newer $step_2_result",
            "time grep -rn eval $step_2_result .",
            "xargs -I{} sh -c 'echo \"$1\"' _ {} <<< $step_2_result",
            "git switch -c $step_2_result",
            "git -c a.b=c log $step_2_result",
            "tar -c -f a.tar $step_2_result",
            "bash <<'X'\nls\nX\nbash <<< ls\necho $step_2_result",
            "grep -v $step_2_result a",
            "python3 -c \"print(1)\"\ncat > n.md <<EOF\n$step_2_result\nEOF",
            "node --version; diff <(sort a) <(sort a); git log -n $step_2_result",
            "bash --version && diff <(sort $step_2_result) f",
            "awk -F$step_2_result '{ print $1 }' f",
            "awk -vx=$step_2_result '{ print x }' f",
            "sed --expression=s/a/b/ $step_2_result",
            "read -r v <<< $step_2_result",
            "declare v=$step_2_result",
            "git --no-pager switch -c $step_2_result",
            "[[ $step_2_result == a ]] || [ 1 -eq 1 ]",
            "echo [auto]$step_2_result",
            "echo \"$(date) $step_2_result\"",
        ] {
            for_command(line, &results(&values())).expect(line);
        }
        for line in [
            "sed -i \"s/a/$step_2_result/\" f",
            "sed -e s/a/b/ -e $step_2_result f",
            "sed -n ${step_2_result}p f",
            "awk \"BEGIN { print $step_2_result }\"",
        ] {
            let why = for_command(line, &results(&values())).expect_err(line);
            assert!(why.contains("would be read as code"), "{why}");
            for_command(line, &results(&[(2, json!(17))])).expect(line);
        }
        for line in [
            "echo $(( $step_2_result + 1 ))",
            "[[ $step_2_result -gt 3 ]] && echo big",
            "let n=$step_2_result+1",
            "declare -i n=$step_2_result",
            "echo ${a[$step_2_result]}",
            "[[ -n a && -v $step_2_result ]]",
            "[[ -n a && 1 -lt $step_2_result ]]",
            "[ -R $step_2_result ]",
            "test -n a -a -v $step_2_result",
            "command declare $step_2_result=1",
            "printf -v$step_2_result x",
            "echo $step_2_result; echo $(( $step_2_result ))",
            "echo $[ $step_2_result ]",
            "[[ 1 -eq\t$step_2_result ]]",
        ] {
            let why = for_command(line, &results(&values())).expect_err(line);
            assert!(why.contains("would evaluate it"), "{why}");
            assert!(find_misplaced(line).is_empty(), "{line}");
            let number = [(2, json!(17))];
            for_command(line, &results(&number)).expect(line);
        }
    }

    proptest! {
        #[test]
        fn no_value_is_ever_part_of_the_text(value in "\\PC{1,40}", before in "[a-z \"\\\\$(]{0,12}") {
            let line = format!("{before} $step_1_result.x ${{step_1_result.x}}");
            let of = |value: &str| for_command(&line, &[(1, &json!({ "x": value }))].into());
            let (Ok((one, given)), Ok((other, _))) = (of(&value), of("other")) else { return Ok(()) };
            prop_assert_eq!(one, other);
            prop_assert_eq!(given, vec![("step_1_result_x".to_owned(), value)]);
        }
    }
}
