//! Finds the other processes that hold standard input open, from `/proc`. Without `/proc` they are unknown.

#[cfg(target_os = "linux")]
pub(super) use linux::{find_writer, parent_shares};

/// The kind of process that writes our standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StdinWriter {
    /// Another process of the pipeline, or a file: the input will end.
    Peer,
    /// Only processes that started us: the pipe may never be closed.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux tells"))]
    Ancestor,
    Unknown,
}

#[cfg(not(target_os = "linux"))]
pub(super) fn find_writer() -> StdinWriter {
    StdinWriter::Unknown
}

#[cfg(not(target_os = "linux"))]
pub(super) fn parent_shares() -> bool {
    false
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, Metadata};
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::os::unix::process::parent_id;
    use std::time::Duration;

    use super::StdinWriter;
    use crate::screen::terminal;

    const CLOSE_ON_EXEC: u32 = 0o2_000_000;

    /// A file, pipe or socket that is open somewhere.
    struct OpenFile {
        metadata: Metadata,
        /// The flags that were passed to `open`.
        flags: u32,
        offset: u64,
    }

    /// Finds who else has the pipe open for writing. Files end by themselves.
    pub fn find_writer() -> StdinWriter {
        let Some(stdin) = OpenFile::read_descriptor("self", "0") else { return StdinWriter::Unknown };
        if stdin.metadata.is_file() {
            return StdinWriter::Peer;
        }
        if !stdin.metadata.file_type().is_fifo() {
            return StdinWriter::Unknown;
        }
        let ancestors = list_ancestors();
        let Ok(processes) = fs::read_dir("/proc") else { return StdinWriter::Unknown };
        let own = std::process::id();
        let holders: Vec<u32> = processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|process| *process != own)
            .filter(|process| held_by(*process, &stdin).any(|held| held.is_writable()))
            .collect();
        if holders.iter().any(|holder| !ancestors.contains(holder)) {
            StdinWriter::Peer
        } else if holders.is_empty() {
            // Closed already (the read ends at once), or held by a process that we may not inspect.
            StdinWriter::Unknown
        } else {
            StdinWriter::Ancestor
        }
    }

    /// Programs that start one command, wait for it and read nothing themselves.
    const WAITING: [&str; 6] = ["timeout", "time", "sudo", "doas", "setsid", "strace"];

    /// True if our parent can read from our standard input, and there is data left that it would lose.
    ///
    /// A shell that sets up a pipeline holds the pipe for a moment after it has started us, and closes it before it
    /// sleeps. So a parent counts if it holds the pipe in two looks while it sleeps, or for all looks.
    pub fn parent_shares() -> bool {
        const LOOKS: u32 = 20;
        const BETWEEN: Duration = Duration::from_millis(10);
        // Reading from a device takes nothing from others, so a device needs no further checks.
        let is_device = fs::metadata("/proc/self/fd/0").is_ok_and(|stdin| stdin.file_type().is_char_device());
        if is_device || !OpenFile::read_descriptor("self", "0").is_some_and(|stdin| stdin.can_be_lost()) {
            return false;
        }
        let parent = nearest_reader();
        let mut asleep = 0;
        for _ in 0..LOOKS {
            if !reads_with_us(parent) {
                return false;
            }
            asleep += u32::from(stat_of(parent, 0).is_some_and(|state| state.starts_with('S')));
            if asleep == 2 {
                return true;
            }
            std::thread::sleep(BETWEEN);
        }
        true
    }

    /// The nearest ancestor that does more than wait for us.
    fn nearest_reader() -> u32 {
        let mut process = parent_id();
        while only_waits(process)
            && let Some(parent) = parent_of(process)
        {
            process = parent;
        }
        process
    }

    /// True if a process is one of [`WAITING`], or a shell that was started for one command (`sh -c 'agent run …'`)
    /// and did not replace itself with it.
    fn only_waits(process: u32) -> bool {
        let Ok(line) = fs::read_to_string(format!("/proc/{process}/cmdline")) else { return false };
        let words: Vec<&str> = line.split('\0').filter(|word| *word != "--").collect();
        match words.as_slice() {
            [program, ..] if WAITING.contains(&file_name(program)) => true,
            [program, flags, text, ..] => {
                file_name(program).ends_with("sh")
                    && flags.starts_with('-')
                    && flags.ends_with('c')
                    && is_ours(text)
            }
            _ => false,
        }
    }

    /// True if `text` is one shell command that starts us.
    fn is_ours(text: &str) -> bool {
        let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let program = text.split_whitespace().find(|word| !word.contains('=')).map(file_name);
        let starts_us = program.is_some_and(|name| name == own.trim_end() || WAITING.contains(&name));
        starts_us && !text.replace(">&", "").replace("&>", "").contains([';', '&', '|', '(', '`', '\n'])
    }

    fn file_name(path: &str) -> &str {
        path.rsplit('/').next().unwrap_or_default()
    }

    fn reads_with_us(process: u32) -> bool {
        let Some(stdin) = OpenFile::read_descriptor("self", "0") else { return false };
        // A shell loop reads its first line before it starts anything, so its offset is not 0.
        let is_for_us = stdin.metadata.is_file() && stdin.offset == 0 && redirects_for_its_commands(process);
        !is_for_us && held_by(process, &stdin).any(|held| held.takes_from(&stdin))
    }

    /// True if a process has saved its own stdin, as dash does for `command < file`; other shells leave the
    /// redirection to the new process. Shells keep saved descriptors, and their script, above descriptor 9.
    fn redirects_for_its_commands(process: u32) -> bool {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        descriptors.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).any(|descriptor| {
            descriptor > 9
                && OpenFile::read_descriptor(&process.to_string(), &descriptor.to_string())
                    .is_some_and(|open| open.flags & CLOSE_ON_EXEC != 0 && !open.metadata.is_file())
        })
    }

    /// The descriptors of a process that are open on the same file, pipe or socket as `stdin`.
    fn held_by(process: u32, stdin: &OpenFile) -> impl Iterator<Item = OpenFile> {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        descriptors.filter_map(move |entry| {
            let metadata = fs::metadata(entry.path()).ok()?;
            let is_same = (metadata.dev(), metadata.ino()) == (stdin.metadata.dev(), stdin.metadata.ino());
            let descriptor = entry.file_name();
            is_same.then(|| OpenFile::read_descriptor(&process.to_string(), descriptor.to_str()?)).flatten()
        })
    }

    impl OpenFile {
        /// Reads `fdinfo`, which has a line for each field; `flags` is octal.
        fn read_descriptor(process: &str, descriptor: &str) -> Option<Self> {
            let metadata = fs::metadata(format!("/proc/{process}/fd/{descriptor}")).ok()?;
            let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")).ok()?;
            let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            Some(Self {
                metadata,
                flags: u32::from_str_radix(field("flags:")?, 8).ok()?,
                offset: field("pos:")?.parse().ok()?,
            })
        }

        /// True if it is open for writing. The last two bits are the access mode: 0 reads, 1 writes, 2 does both.
        fn is_writable(&self) -> bool {
            self.flags & 0b11 != 0
        }

        /// True if reading from `stdin` takes data from this one. A file that was opened twice has two offsets.
        fn takes_from(&self, stdin: &Self) -> bool {
            let place = |open: &Self| (open.flags & !CLOSE_ON_EXEC, open.offset);
            (!stdin.metadata.is_file() || place(self) == place(stdin)) && self.flags & 0b11 != 1
        }

        /// True if this, as our stdin, has data left that another process could want.
        fn can_be_lost(&self) -> bool {
            if self.metadata.is_file() { self.offset < self.metadata.len() } else { !terminal::stdin_is_spent() }
        }
    }

    fn list_ancestors() -> Vec<u32> {
        let mut chain = Vec::new();
        let mut process = std::process::id();
        while let Some(parent) = parent_of(process).filter(|parent| *parent > 0 && !chain.contains(parent)) {
            chain.push(parent);
            process = parent;
        }
        chain
    }

    fn parent_of(process: u32) -> Option<u32> {
        stat_of(process, 1)?.parse().ok()
    }

    /// A field of `stat`, counted from the first after the name, which is in parentheses and may contain anything.
    fn stat_of(process: u32, field: usize) -> Option<String> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(field).map(str::to_owned)
    }
}
