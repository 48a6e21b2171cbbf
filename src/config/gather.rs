//! Reads every document of every layer, with variables and flags on top.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use super::document::ConfigReading;
use super::key;
use super::layer::{self, Layers};
use super::mistake::Mistake;
use super::narrow::{self, NarrowedLists};
use super::narrowed::Narrowed;
use super::options::LoadOptions;
use super::source::{ConfigDocument, ConfigLayer, Sources};

/// Everything that was read, before it is interpreted.
pub(super) struct Gathered {
    pub layers: Layers,
    pub sources: Sources,
    pub documents: Vec<ConfigDocument>,
    pub warnings: Vec<String>,
    /// The project's selections of the tools and skills of agents.
    pub narrowed: BTreeMap<String, Narrowed>,
}

pub(super) fn gather_documents(options: &LoadOptions<'_>) -> (Gathered, Vec<Mistake>) {
    let mut layers = layer::find_layers(options);
    let mut reading = ConfigReading {
        env: options.env,
        sources: Sources::default(),
        documents: Vec::new(),
        mistakes: std::mem::take(&mut layers.mistakes),
        warnings: std::mem::take(&mut layers.warnings),
        included: Arc::new(Mutex::new(HashSet::new())),
    };
    for dir in &layers.dirs {
        let scan = layer::scan_layer(dir);
        reading.mistakes.extend(scan.mistakes);
        reading.warnings.extend(scan.warnings);
        scan.files.into_iter().for_each(|file| reading.read(file));
        let included = reading.included.lock().expect("no holder panics");
        let is_included = |unknown: &str| {
            let inside = |name: &str| name == unknown || name.starts_with(&format!("{unknown}/"));
            included.iter().any(|(root, name)| Some(root) == dir.dir.as_ref() && inside(name))
        };
        let unknown = scan.unknown.into_iter().filter(|(path, _)| !is_included(path));
        let unknown = unknown.map(|(_, mistake)| mistake);
        if dir.layer == ConfigLayer::Project {
            reading.warnings.extend(layer::shorten_list(unknown.map(|mistake| mistake.to_string())));
        } else {
            reading.mistakes.extend(unknown);
        }
    }
    if let Some(brought) = options.brought.as_ref().filter(|_| options.trust && options.directory().is_none()) {
        reading.read_shared_servers(brought);
    }
    key::apply_sets(&mut reading, options.sets);
    let ConfigReading { mut sources, mut documents, mistakes, mut warnings, .. } = reading;
    let NarrowedLists { agents: narrowed, warnings: left_out } =
        narrow::narrow_documents(&mut documents, &sources);
    warnings.extend(left_out);
    options.flags.lay(&mut documents, &mut sources);
    (Gathered { layers, sources, documents, warnings, narrowed }, mistakes)
}
