//! Plans and captures of a server: list, check, store and delete.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use wirestorm_api::capture::Capture;
use wirestorm_api::error::{ErrorAt, ErrorCode, ErrorDocument};
use wirestorm_api::event::Event;
use wirestorm_api::plan::{FlowFrames, PlanSummary, StoredPlan};

use super::library::{Upload, UploadedFiles};
use super::{Answer, Server, frames, request};

impl Server {
    /// Lists the stored plans.
    pub(crate) fn plans(&self) -> Answer<Vec<StoredPlan>> {
        Ok(self.plans.list()?.into_iter().map(StoredPlan::from).collect())
    }

    /// Returns the text of a stored plan.
    pub(crate) fn plan(&self, name: &str) -> Answer<String> {
        let path = self.plans.path(name)?;
        fs::read_to_string(&path).map_err(|error| {
            ErrorDocument::new(ErrorCode::Storage, format!("plan {name:?}: {error}"))
        })
    }

    /// Stores a plan, or replaces it. It must have no errors.
    pub(crate) fn store_plan(&self, name: &str, text: &str) -> Answer<StoredPlan> {
        let summary = self.check_plan(text);
        if !summary.errors.is_empty() {
            let message = "the plan has errors".to_owned();
            return Err(ErrorDocument { code: ErrorCode::Plan, message, errors: summary.errors });
        }
        let mut upload = self.plans.create(name)?;
        upload.write(text.as_bytes())?;
        let plan = StoredPlan::from(upload.finish()?);
        self.publish(Event::PlanStored { plan: plan.clone() });
        Ok(plan)
    }

    /// Deletes a stored plan.
    pub(crate) fn delete_plan(&self, name: &str) -> Answer<()> {
        self.plans.delete(name)?;
        self.publish(Event::PlanDeleted { name: name.to_owned() });
        Ok(())
    }

    /// Returns what a plan contains, and its errors.
    pub(crate) fn check_plan(&self, text: &str) -> PlanSummary {
        let files = UploadedFiles::new(Arc::clone(&self.captures), BTreeMap::new());
        request::summary(text, &files)
    }

    /// Returns the first frames of each flow of a plan.
    pub(crate) fn frames(&self, text: &str, count: u64) -> Answer<Vec<FlowFrames>> {
        let files = UploadedFiles::new(Arc::clone(&self.captures), BTreeMap::new());
        let plan =
            request::streams_of(text, &files).map_err(|error| with_missing(error, &files))?;
        frames::frames(&plan, count)
    }

    /// Lists the uploaded captures.
    pub(crate) fn captures(&self) -> Answer<Vec<Capture>> {
        Ok(self.captures.list()?.into_iter().map(Capture::from).collect())
    }

    /// Returns the path of an uploaded capture.
    pub(crate) fn capture_path(&self, name: &str) -> Answer<PathBuf> {
        self.captures.path(name)
    }

    /// Starts the upload of a capture.
    pub(crate) fn upload(&self, name: &str) -> Answer<Upload<'_>> {
        self.captures.create(name)
    }

    /// Ends the upload of a capture.
    pub(crate) fn finish_upload(&self, upload: Upload<'_>) -> Answer<Capture> {
        let capture = Capture::from(upload.finish()?);
        self.publish(Event::CaptureUploaded { capture: capture.clone() });
        Ok(capture)
    }

    /// Deletes an uploaded capture.
    pub(crate) fn delete_capture(&self, name: &str) -> Answer<()> {
        self.captures.delete(name)?;
        self.publish(Event::CaptureDeleted { name: name.to_owned() });
        Ok(())
    }
}

/// Turns an error into one about missing files if there are any.
pub(super) fn with_missing(error: ErrorDocument, files: &UploadedFiles) -> ErrorDocument {
    let missing = files.missing();
    if missing.is_empty() {
        return error;
    }
    let at = |path: String| ErrorAt { path, message: "upload it as a capture".to_owned() };
    ErrorDocument {
        code: ErrorCode::MissingFile,
        message: format!("the plan names files that are not on the server: {}", missing.join(", ")),
        errors: missing.into_iter().map(at).collect(),
    }
}
