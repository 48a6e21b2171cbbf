//! Replaces the catalogue that came with the program: reads another from a file or an address that the user named,
//! checks all of it, and keeps it in the data directory. Nothing here happens automatically.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::Date;

use super::models_dev;
use super::table::{self, CatalogueText, FILE, MOST_BYTES};
use crate::files::regular::{self, Links, replace_file};
use crate::safety::net::{self, Net};

/// A catalogue that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    pub path: PathBuf,
    pub date: Date,
    pub rows: usize,
}

/// The reason that nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: {why}. The catalogue stays as it was")]
pub struct NotUpdated {
    source_name: String,
    why: String,
}

/// Takes the catalogue of a file or of an `http(s)://` address: one of ours, or the `api.json` of models.dev, whose
/// facts are then dated `today`.
///
/// # Errors
/// It cannot be read, is not a catalogue, is older than the program's, or cannot be written.
pub async fn update_catalogue(
    net: &Net,
    source: &str,
    data_dir: &Path,
    today: Date,
) -> Result<Updated, NotUpdated> {
    let is_address = crate::config::is_address(source);
    let name = if is_address { strip_secrets(source) } else { source.to_owned() };
    let failed = |why: String| NotUpdated { source_name: name.clone(), why };
    let bytes = if is_address { fetch_catalogue(net, source).await } else { read_file(Path::new(source)) }
        .map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))?;
    let text = catalogue_of(&text, &one_line(&name), today).map_err(failed)?;
    let table = CatalogueText::open(&text).map_err(failed)?;
    let rows = table.check().map_err(failed)?;
    table.check_age().map_err(|why| failed(format!("it {why}")))?;
    let path = data_dir.join(FILE);
    replace_file(&path, text.as_bytes())
        .map_err(|error| failed(format!("{} cannot be written: {error}", path.display())))?;
    Ok(Updated { path, date: table.date, rows })
}

/// The text that is kept: in our form, with the place that it came from.
fn catalogue_of(text: &str, name: &str, today: Date) -> Result<String, String> {
    if text.trim_start().starts_with('{') {
        let sections =
            models_dev::read_sections(text).ok_or("it has no models that this program knows how to read")?;
        return Ok(table::write_catalogue(today, &format!("{name} (models.dev)"), &sections));
    }
    let table = CatalogueText::open(text)?;
    if table.date > today {
        return Err(format!("it is of {}, which is in the future", table.date));
    }
    let (head, rest) = text.split_once("\norigin ").ok_or("its second line does not begin with `origin `")?;
    let body = rest.split_once('\n').map_or("", |(_, body)| body);
    Ok(format!("{head}\norigin {name} ({})\n{body}", table.origin))
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = regular::read_bytes(path, Links::Follow, MOST_BYTES).map_err(|why| format!("it {why}"))?;
    bytes.ok_or_else(|| "there is no such file".to_owned())
}

async fn fetch_catalogue(net: &Net, address: &str) -> Result<Vec<u8>, String> {
    const CONNECT: Duration = Duration::from_secs(10);
    const WHOLE: Duration = Duration::from_mins(2);
    let url = net::parse_url(address).map_err(|error| error.to_string())?;
    let client = net.client(&url, CONNECT).map_err(|error| error.to_string())?;
    let failed = |error: reqwest::Error| format!("it cannot be fetched: {}", net::list_causes(&error));
    let mut response = client.get(url).timeout(WHOLE).send().await.map_err(failed)?;
    let status = response.status();
    if let Some(target) = response.headers().get("location").filter(|_| status.is_redirection()) {
        let target = String::from_utf8_lossy(target.as_bytes()).escape_debug().to_string();
        return Err(format!("it moved to {target}: name that address"));
    }
    if !status.is_success() {
        return Err(format!("the server answers {status}"));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > MOST_BYTES {
            return Err(format!("it is longer than {} MiB", MOST_BYTES / 1024 / 1024));
        }
    }
    Ok(bytes)
}

/// An address without the parts that may be secret.
fn strip_secrets(address: &str) -> String {
    let Ok(url) = net::parse_url(address) else { return "the address".to_owned() };
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
