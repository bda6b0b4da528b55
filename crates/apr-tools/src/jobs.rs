//! One command over many inputs, divided into tasks that processes on several machines do. Specified in `docs/jobs.md`.

mod attempt;
mod files;
mod index;
mod inputs;
mod outcome;
mod plan;
mod publish;
mod record;
mod recursive;
mod summary;
mod template;
mod work;

pub(crate) use self::files::Digests;
pub(crate) use self::inputs::Sources;
pub(crate) use self::outcome::Outcome;
pub(crate) use self::plan::{Plan, Request};
pub(crate) use self::publish::{Verification, finish};
pub(crate) use self::record::{Record, Store};
pub(crate) use self::recursive::{as_batch, of_recursive};
pub(crate) use self::summary::Summary;
pub(crate) use self::template::Template;
pub(crate) use self::work::{Done, Patience, run_all, run_task};
