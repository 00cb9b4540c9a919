//! What a document asks its reader to do, step by step.

/// One thing to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Where it stands, from 1.
    pub(super) line: usize,
    pub(super) action: Action,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Type a command and see what is expected; nothing expected is anything.
    Type { command: String, expected: Vec<String> },
    /// Add text to the end of a file of the home.
    Append { path: String, text: String },
}

/// What a comment before a block says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Annotation<'t> {
    Append(&'t str),
    NotRun,
}

/// The steps of a document.
///
/// # Errors
/// The line and what is wrong with it.
pub(super) fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut annotation = None;
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let block: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
            match (kind, annotation.take()) {
                (_, Some(Annotation::Append(path))) => {
                    let text = block.iter().flat_map(|(_, line)| [line, "\n"]).collect();
                    let action = Action::Append { path: path.to_owned(), text };
                    steps.push(Step { line: number, action });
                }
                ("console", None) => commands(&block, &mut steps)?,
                ("toml", None) => return Err(format!("{number}: nothing says where this block goes")),
                (_, Some(Annotation::NotRun) | None) => {}
            }
        } else if !line.trim().is_empty() {
            annotation = comment(line);
        }
    }
    Ok(steps)
}

fn comment(line: &str) -> Option<Annotation<'_>> {
    let comment = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    match comment.split_once(": ")? {
        ("append", path) => Some(Annotation::Append(path)),
        ("not run", _reason) => Some(Annotation::NotRun),
        _other => None,
    }
}

fn commands(block: &[(usize, &str)], steps: &mut Vec<Step>) -> Result<(), String> {
    let first = steps.len();
    for &(number, line) in block {
        if let Some(command) = line.strip_prefix("$ ") {
            let action = Action::Type { command: command.to_owned(), expected: Vec::new() };
            steps.push(Step { line: number, action });
            continue;
        }
        let last = steps.get_mut(first..).and_then(<[Step]>::last_mut).map(|step| &mut step.action);
        let Some(Action::Type { command, expected }) = last else {
            return Err(format!("{number}: a block begins with a command, after `$ `"));
        };
        match line.strip_prefix("> ") {
            Some(more) if expected.is_empty() => {
                command.push('\n');
                command.push_str(more);
            }
            Some(_) | None => expected.push(line.to_owned()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: usize, command: &str, expected: &[&str]) -> Step {
        let expected = expected.iter().map(|line| (*line).to_owned()).collect();
        Step { line, action: Action::Type { command: command.to_owned(), expected } }
    }

    #[test]
    fn steps_reads_commands_files_and_what_is_not_run() {
        let text = "# A\n\n```console\n$ one \\\n> two\nthree\n$ four\n```\n\n<!-- append: .x/y -->\n\n```toml\na = 1\n```\n\
                    <!-- not run: slow -->\n```console\n$ five\n```\n```text\n$ six\n```\n";
        let append = Action::Append { path: ".x/y".to_owned(), text: "a = 1\n".to_owned() };
        assert_eq!(
            steps(text).unwrap(),
            [typed(4, "one \\\ntwo", &["three"]), typed(7, "four", &[]), Step { line: 12, action: append }]
        );
    }

    #[test]
    fn steps_refuses_output_without_a_command_and_a_file_without_a_place() {
        assert!(steps("```console\none\n```\n").unwrap_err().starts_with("2: "));
        assert!(steps("text\n\n```toml\na = 1\n```\n").unwrap_err().starts_with("3: "));
    }

    #[test]
    fn an_annotation_is_for_the_next_block_only() {
        assert_eq!(
            steps("<!-- not run: x -->\n```text\n```\n```console\n$ a\n```\n").unwrap(),
            [typed(5, "a", &[])]
        );
        assert_eq!(steps("<!-- not run: x -->\ntext\n```console\n$ a\n```\n").unwrap(), [typed(4, "a", &[])]);
    }
}
