//! HDF5, and Keras' `.h5` files.
//!
//! Read after the HDF5 File Format Specification, version 3, and checked against the library of HDF5 (1.10 and 2.0).

mod attribute;
mod chunks;
mod dataset;
mod datatype;
mod dense;
mod file;
mod filters;
mod group;
mod header;
mod index;
mod layout;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use foreign_format::Format;
use json_scan::Check;
use read_at::ReadAt;

use crate::error::{Error, ErrorKind};
use crate::files::Companions;
use crate::hdf5::attribute::{Attribute, attributes};
use crate::hdf5::dataset::{Dataset, is_dataset};
use crate::hdf5::file::File;
use crate::hdf5::group::{Target, is_group, links};
use crate::hdf5::header::Header;
use crate::model::Model;
use crate::names::{matches, no_key};
use crate::options::Options;

/// Soft links that are followed for one name.
const MAX_HOPS: usize = 16;
/// Attributes whose text is JSON: Keras' configuration of a model.
const JSON_ATTRIBUTES: [&str; 2] = ["model_config", "training_config"];

/// Reads an HDF5 file. Names are the paths of datasets with `.` in place of `/`; other files are never opened.
///
/// # Errors
///
/// [`ErrorKind::Malformed`], [`ErrorKind::Unsupported`], [`ErrorKind::Limit`], [`ErrorKind::DuplicateName`], [`ErrorKind::NoObject`];
/// [`ErrorKind::View`] for a dataset without its bytes.
pub fn read(file: &dyn ReadAt, _: &dyn Companions, options: &Options) -> Result<Model, Error> {
    let mut model = Model::new(Format::Hdf5);
    read_within(file, 0..file.total_len(), &mut model, options)?;
    Ok(model)
}

/// Reads a file that is a range of another one.
pub(crate) fn read_within(
    source: &dyn ReadAt,
    within: Range<u64>,
    model: &mut Model,
    options: &Options,
) -> Result<(), Error> {
    let (file, root) = File::open(source, within, options.limits.steps)?;
    let mut walk = Walk {
        file: &file,
        source,
        model,
        options,
        prefix: 0,
        text: 0,
        groups: BTreeMap::new(),
        datasets: Vec::new(),
        by_address: BTreeMap::new(),
        by_path: BTreeMap::new(),
        soft: BTreeMap::new(),
    };
    let root = walk.start(root)?;
    walk.groups(root)?;
    walk.resolve_soft_links();
    walk.add_datasets()
}

/// Something to visit: its path from the root, which begins with `/`, the address of its header, and how deep it is.
struct Visit {
    path: String,
    address: u64,
    depth: usize,
}

/// A walk through the groups of a file.
struct Walk<'f, 'a> {
    file: &'a File<'f>,
    source: &'f dyn ReadAt,
    model: &'a mut Model,
    options: &'a Options,
    /// Bytes of paths before names: of the group that was asked for.
    prefix: usize,
    /// Bytes of names and values so far.
    text: u64,
    /// Paths of groups by address.
    groups: BTreeMap<u64, String>,
    /// Addresses and paths of datasets.
    datasets: Vec<(u64, Vec<String>)>,
    by_address: BTreeMap<u64, usize>,
    by_path: BTreeMap<String, usize>,
    /// Soft links: paths and what they lead to.
    soft: BTreeMap<String, String>,
}

impl Walk<'_, '_> {
    /// Finds the object that the options ask for.
    fn start(&mut self, root: u64) -> Result<Visit, Error> {
        let mut visit = Visit { path: String::new(), address: root, depth: 0 };
        let mut key = self.options.object.as_str();
        while !key.is_empty() {
            let header = Header::read(self.file, visit.address)?;
            let mut found = Vec::new();
            links(self.file, &header, &mut found)?;
            let rest = |name: &str| {
                let rest = key.strip_prefix(name)?;
                if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
            };
            // Names may contain dots: the longest one that fits.
            let next = found
                .iter()
                .filter_map(|link| match link.target {
                    Target::Hard(address) => Some((link, address, rest(&link.name)?)),
                    _ => None,
                })
                .max_by_key(|(link, ..)| link.name.len());
            let Some((link, address, rest)) = next else {
                return Err(no_key(found.iter().map(|link| link.name.as_str())));
            };
            visit.path = format!("{}/{}", visit.path, link.name);
            visit.address = address;
            key = rest;
        }
        self.prefix = visit.path.len();
        Ok(visit)
    }

    /// The name of what is at a path.
    fn name(&self, path: &str) -> String {
        let below = path.get(self.prefix..).unwrap_or(path);
        // What was asked for may be one dataset.
        let below = if below.is_empty() { path.rsplit('/').next().unwrap_or(path) } else { below };
        below.trim_start_matches('/').replace('/', ".")
    }

    /// Counts bytes of names and values.
    fn keep(&mut self, len: usize) -> Result<(), Error> {
        self.text = self.text.saturating_add(len as u64);
        let allowed = self.options.limits.text_bytes;
        if self.text > allowed {
            Err(ErrorKind::Limit { limit: "text_bytes", allowed }.into())
        } else {
            Ok(())
        }
    }

    /// Visits all groups below one, without recursion.
    fn groups(&mut self, root: Visit) -> Result<(), Error> {
        let mut pending = alloc::vec![root];
        while let Some(visit) = pending.pop() {
            let known = self.by_address.get(&visit.address).copied();
            if let Some((_, paths)) = known.and_then(|idx| self.datasets.get_mut(idx)) {
                paths.push(visit.path.clone());
                self.by_path.insert(visit.path, known.unwrap_or_default());
                continue;
            }
            if let Some(first) = self.groups.get(&visit.address) {
                let first = self.name(first);
                let first = if first.is_empty() { "the root group" } else { &first };
                self.model.note(
                    self.name(&visit.path),
                    format!("the same as {first}, whose tensors are not repeated"),
                );
                continue;
            }
            let header = Header::read(self.file, visit.address)?;
            if is_dataset(&header) {
                self.by_address.insert(visit.address, self.datasets.len());
                self.by_path.insert(visit.path.clone(), self.datasets.len());
                self.datasets.push((visit.address, alloc::vec![visit.path]));
            } else if is_group(&header) {
                if visit.depth > self.options.limits.depth {
                    let allowed = self.options.limits.depth as u64;
                    return Err(ErrorKind::Limit { limit: "depth", allowed }.into());
                }
                self.group(&visit, &header, &mut pending)?;
                self.groups.insert(visit.address, visit.path);
            } else {
                self.model.note(self.name(&visit.path), "neither a group nor a dataset: left out");
            }
        }
        Ok(())
    }

    fn group(&mut self, visit: &Visit, header: &Header, pending: &mut Vec<Visit>) -> Result<(), Error> {
        self.entries(&self.name(&visit.path), attributes(self.file, header)?)?;
        let mut found = Vec::new();
        links(self.file, header, &mut found)?;
        let first = pending.len();
        for link in found {
            let path = format!("{}/{}", visit.path, link.name);
            self.keep(path.len())?;
            if !link.is_exact || link.name.is_empty() || link.name.contains('/') {
                self.model.note(self.name(&path), "the name is not UTF-8, or empty, or has a slash");
            }
            match link.target {
                Target::Hard(address) => pending.push(Visit { path, address, depth: visit.depth + 1 }),
                Target::Soft(target) => {
                    self.keep(target.len())?;
                    let target =
                        if target.starts_with('/') { target } else { format!("{}/{target}", visit.path) };
                    self.soft.insert(path, target);
                }
                Target::Other => self.model.note(self.name(&path), "a link to another file is not followed"),
            }
        }
        if pending.len() as u64 > self.file.frame.file_len() / 8 {
            return Err(Error::malformed("the file has more links than it has space for"));
        }
        // The first one is visited first.
        pending.get_mut(first..).unwrap_or_default().reverse();
        Ok(())
    }

    /// Keeps the attributes of an object.
    fn entries(&mut self, name: &str, (found, left_out): (Vec<Attribute>, u64)) -> Result<(), Error> {
        for attribute in &found {
            let entry = crate::names::join(name, &attribute.name);
            let embedded = match JSON_ATTRIBUTES.contains(&attribute.name.as_str()) {
                true => {
                    attribute.text(self.file)?.filter(|text| json_scan::value(text, Check::Values).is_ok())
                }
                false => None,
            };
            let json = match embedded {
                Some(json) => Some(json),
                None => attribute.json(self.file)?,
            };
            match json {
                Some(json) => {
                    self.keep(entry.len() + json.len())?;
                    self.model.add_entry(entry, json);
                }
                None => self.model.note(entry, "an attribute without a form in JSON is left out"),
            }
        }
        if left_out > 0 {
            self.model.note(name, format!("{left_out} attributes that are stored elsewhere are left out"));
        }
        Ok(())
    }

    /// Adds the paths of soft links to the datasets that they lead to.
    fn resolve_soft_links(&mut self) {
        let groups: BTreeSet<&str> = self.groups.values().map(String::as_str).collect();
        for (path, target) in &self.soft {
            let mut target = normal(target);
            let mut hops = 0;
            let problem = loop {
                if let Some((_, paths)) =
                    self.by_path.get(&target).and_then(|idx| self.datasets.get_mut(*idx))
                {
                    paths.push(path.clone());
                    break None;
                }
                if groups.contains(target.as_str()) {
                    break Some("a link to a group whose tensors are not repeated");
                }
                hops += 1;
                let next = self.through_soft_link(&target).filter(|_| hops <= MAX_HOPS);
                match next {
                    Some(next) => target = next,
                    None => break Some("a link that leads to nothing"),
                }
            };
            if let Some(problem) = problem {
                self.model.note(self.name(path), problem);
            }
        }
    }

    /// The path with its first part that is a soft link replaced by what this leads to.
    fn through_soft_link(&self, path: &str) -> Option<String> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let (part, rest) = (path.get(..end)?, path.get(end..)?);
            if let Some(target) = self.soft.get(part) {
                // No longer than the paths that there are.
                return Some(normal(&format!("{target}{rest}"))).filter(|path| path.len() <= 1 << 16);
            }
        }
        None
    }

    /// Adds the datasets as tensors. Of several names, the alphabetically first one is that of the tensor.
    fn add_datasets(&mut self) -> Result<(), Error> {
        for (address, paths) in core::mem::take(&mut self.datasets) {
            let mut names: Vec<String> = paths.iter().map(|path| self.name(path)).collect();
            names.sort();
            let is_excluded =
                |name: &String| self.options.exclude.iter().any(|pattern| matches(pattern, name));
            let (excluded, kept): (Vec<String>, Vec<String>) = names.into_iter().partition(is_excluded);
            for name in excluded {
                self.model.note(name, "left out as requested");
            }
            let Some((name, aliases)) = kept.split_first() else { continue };
            let header = Header::read(self.file, address)?;
            let found = attributes(self.file, &header)?;
            let dataset = Dataset { name, header: &header, attributes: &found.0 };
            let is_tensor = dataset.add(self.file, self.source, self.model, self.options)?;
            self.entries(name, found)?;
            for alias in aliases {
                self.keep(alias.len())?;
                if is_tensor {
                    self.model.add_alias(alias.clone(), name.clone())?;
                } else {
                    self.model.note(alias.clone(), format!("a second name of {name}"));
                }
            }
        }
        Ok(())
    }
}

/// A path without empty parts and `.`.
fn normal(path: &str) -> String {
    let mut normal = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        normal.push('/');
        normal.push_str(part);
    }
    normal.to_string()
}
