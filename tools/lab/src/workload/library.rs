//! The workloads that come with the program.

use super::Workload;
use crate::LabError;

const FILES: [(&str, &str); 10] = [
    ("values", include_str!("../../workloads/values.toml")),
    ("lines", include_str!("../../workloads/lines.toml")),
    ("loop", include_str!("../../workloads/loop.toml")),
    ("fetch", include_str!("../../workloads/fetch.toml")),
    ("batch", include_str!("../../workloads/batch.toml")),
    ("lob", include_str!("../../workloads/lob.toml")),
    ("lob-large", include_str!("../../workloads/lob-large.toml")),
    ("pipeline-read", include_str!("../../workloads/pipeline-read.toml")),
    ("pipeline-dml", include_str!("../../workloads/pipeline-dml.toml")),
    ("pipeline-oltp", include_str!("../../workloads/pipeline-oltp.toml")),
];

/// All of them, in the order in which they are best read.
///
/// # Errors
///
/// A file that does not hold a workload; a test sees that there is none.
pub fn all() -> Result<Vec<Workload>, LabError> {
    FILES.iter().map(|(name, text)| parse(name, text)).collect()
}

/// The one of this name.
///
/// # Errors
///
/// There is none.
pub fn find(name: &str) -> Result<Workload, LabError> {
    let (name, text) = FILES
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| LabError::UnknownWorkload(name.to_owned()))?;
    parse(name, text)
}

fn parse(name: &str, text: &str) -> Result<Workload, LabError> {
    toml::from_str(text)
        .map_err(|error| LabError::Workload { workload: name.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_can_be_read_and_is_named_as_its_file() {
        let names: Vec<String> = all().unwrap().into_iter().map(|workload| workload.name).collect();
        assert_eq!(names, FILES.map(|(name, _)| name));
        assert!(matches!(find("nothing"), Err(LabError::UnknownWorkload(_))));
    }
}
