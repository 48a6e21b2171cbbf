//! The former contents of files, found by their SHA-256: in packs, one for each process that wrote some.
//!
//! A pack is `NAME.pack`, compressed contents one after another, and `NAME.list`, a line for each: its key, where it
//! begins, and how long it is there. A line is written after its content, so a torn end loses what nothing refers to.
//! When all packs together exceed the cap, the oldest go.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::base::digest::hash_sha256;
use crate::files::private::{make_private_dir, private_file};

/// What all packs of a workspace may have together, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// What is gathered before it is written, in bytes.
const MOST_GATHERED: usize = 1 << 20;

/// The longest content, in bytes.
pub(super) const MOST_UNPACKED: usize = 16 << 20;

/// The directory of the former contents beside a log.
pub fn contents_beside(log: &Path) -> PathBuf {
    log.with_file_name("files")
}

/// The contents that are kept for a workspace. Threads may keep some beside each other.
pub(super) struct ContentStore {
    dir: PathBuf,
    kept: Mutex<KeptContents>,
}

#[derive(Default)]
struct KeptContents {
    packs: Vec<PathBuf>,
    places: HashMap<String, ContentPlace>,
    own: Option<OwnPack>,
}

/// Where a content is.
#[derive(Debug, Clone, Copy)]
struct ContentPlace {
    /// The number of its pack.
    pack: usize,
    offset: u64,
    /// Its length in the pack.
    packed: usize,
}

/// The pack that this process writes.
struct OwnPack {
    number: usize,
    pack: File,
    list: File,
    /// Where the next content begins.
    offset: u64,
    /// What is not written yet, and its lines.
    gathered: Vec<u8>,
    lines: String,
}

impl ContentStore {
    /// Opens the store in a directory, which is made with the first content.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let mut kept = KeptContents::default();
        for pack in choose_packs(dir)? {
            let text = fs::read_to_string(pack.with_extension("list")).unwrap_or_default();
            let number = kept.packs.len();
            let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            kept.places.extend(lines.filter_map(|line| parse_line(line, number)));
            kept.packs.push(pack);
        }
        Ok(Self { dir: dir.to_path_buf(), kept: Mutex::new(kept) })
    }

    fn lock(&self) -> MutexGuard<'_, KeptContents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a content is kept.
    pub fn has(&self, key: &str) -> bool {
        self.lock().places.contains_key(key)
    }

    /// Keeps a content; returns its key. It is on the disk after the next [`ContentStore::flush`].
    ///
    /// # Errors
    /// The disk fails.
    pub fn put(&self, content: &[u8]) -> io::Result<String> {
        let key = hash_sha256([content]);
        if !self.has(&key) {
            // Most of the time goes here: other threads need not wait for it.
            let packed = lz4_flex::compress_prepend_size(content);
            self.lock().add(&self.dir, &key, &packed)?;
        }
        Ok(key)
    }

    /// Writes what was gathered.
    ///
    /// # Errors
    /// The disk fails.
    pub fn flush(&self) -> io::Result<()> {
        self.lock().own.as_mut().map_or(Ok(()), OwnPack::flush)
    }

    /// The content with this key.
    ///
    /// # Errors
    /// It is not kept any more, or is damaged.
    pub fn get(&self, key: &str) -> io::Result<Vec<u8>> {
        self.flush()?;
        let (path, place) = self.lock().find(key)?;
        let mut pack = File::open(path)?;
        pack.seek(SeekFrom::Start(place.offset))?;
        let mut packed = Vec::new();
        pack.take(place.packed as u64).read_to_end(&mut packed)?;
        // Damage may say any length.
        let length =
            lz4_flex::block::uncompressed_size(&packed).ok().filter(|(length, _)| *length <= MOST_UNPACKED);
        let content = length.and_then(|(length, packed)| lz4_flex::decompress(packed, length).ok());
        content
            .filter(|content| hash_sha256([content.as_slice()]) == key)
            .ok_or_else(|| io::Error::other("its kept content is damaged"))
    }
}

impl KeptContents {
    fn find(&self, key: &str) -> io::Result<(PathBuf, ContentPlace)> {
        let place = self.places.get(key).ok_or_else(|| io::Error::other("its content is not kept any more"))?;
        Ok((self.packs[place.pack].clone(), *place))
    }

    fn add(&mut self, dir: &Path, key: &str, packed: &[u8]) -> io::Result<()> {
        // Another thread may have read the same.
        if self.places.contains_key(key) {
            return Ok(());
        }
        let own = match &mut self.own {
            Some(own) => own,
            none => none.insert(begin_pack(dir, &mut self.packs)?),
        };
        let place = ContentPlace { pack: own.number, offset: own.offset, packed: packed.len() };
        own.offset += packed.len() as u64;
        own.gathered.extend_from_slice(packed);
        let _ = writeln!(own.lines, "{key} {} {}", place.offset, place.packed);
        self.places.insert(key.to_owned(), place);
        if own.gathered.len() >= MOST_GATHERED { own.flush() } else { Ok(()) }
    }
}

impl OwnPack {
    /// Contents are written before their lines.
    fn flush(&mut self) -> io::Result<()> {
        self.pack.write_all(&std::mem::take(&mut self.gathered))?;
        self.list.write_all(std::mem::take(&mut self.lines).as_bytes())
    }
}

/// The packs of a directory, oldest first, after the oldest were removed if all together are too large.
fn choose_packs(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let listing = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing?,
    };
    let mut packs: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    packs.retain(|path| path.extension().is_some_and(|end| end == "pack"));
    packs.sort();
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
    let mut all: u64 = packs.iter().map(size).sum();
    packs.retain(|pack| {
        if all <= MOST_BYTES {
            return true;
        }
        all -= size(pack);
        let _ = (fs::remove_file(pack.with_extension("list")), fs::remove_file(pack));
        false
    });
    Ok(packs)
}

/// Begins a pack, whose name comes after those before it.
fn begin_pack(dir: &Path, packs: &mut Vec<PathBuf>) -> io::Result<OwnPack> {
    make_private_dir(dir)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let path = dir.join(format!("{since:020}-{:08x}.pack", fastrand::u32(..)));
    let create = |path: &Path| private_file().write(true).create_new(true).open(path);
    let (pack, list) = (create(&path)?, create(&path.with_extension("list"))?);
    packs.push(path);
    let number = packs.len() - 1;
    Ok(OwnPack { number, pack, list, offset: 0, gathered: Vec::new(), lines: String::new() })
}

fn parse_line(line: &str, pack: usize) -> Option<(String, ContentPlace)> {
    let mut words = line.split(' ');
    let key = words.next().filter(|key| key.len() == 64)?.to_owned();
    let place = ContentPlace { pack, offset: words.next()?.parse().ok()?, packed: words.next()?.parse().ok()? };
    Some((key, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_kept_once_and_found_by_every_later_process() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let dir = dir.path().join("files");
        let store = ContentStore::open(&dir).expect("nothing there yet");
        let long = b"a line that comes again\n".repeat(1000);
        let key = store.put(&long).expect("kept");
        let empty = store.put(b"").expect("kept");
        assert_eq!(store.put(&long).expect("known"), key);
        store.flush().expect("written");
        let later = ContentStore::open(&dir).expect("readable");
        assert_eq!(later.get(&key).expect("kept"), long);
        assert_eq!(later.get(&empty).expect("kept"), b"");
        later.put(b"another").expect("kept");
        later.flush().expect("written");
        assert_eq!(fs::read_dir(&dir).expect("listed").count(), 4, "two packs and their lists");
        assert!(
            later.lock().packs.iter().map(|pack| fs::metadata(pack).expect("there").len()).sum::<u64>() < 1000
        );
    }

    #[test]
    fn damage_is_told_and_never_given_back() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let store = ContentStore::open(dir.path()).expect("readable");
        let key = store.put(b"what was there before").expect("kept");
        store.flush().expect("written");
        let pack = store.lock().packs[0].clone();
        let whole = fs::read(&pack).expect("a pack");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fs::write(&pack, bytes).expect("written");
            let found = store.get(&key).ok();
            assert!(found.is_none_or(|found| found == b"what was there before"), "byte {at}");
        }
        let list = pack.with_extension("list");
        fs::write(list, format!("{key} 0 9")).expect("written");
        assert!(!ContentStore::open(dir.path()).expect("readable").has(&key), "a torn line counts for nothing");
    }
}
