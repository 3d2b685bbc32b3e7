//! libpq's connection service file, `pg_service.conf`.

use std::path::{Path, PathBuf};

use crate::keywords::is_keyword;
use crate::{ConninfoError, Environment};

/// The settings of a service: from PGSERVICEFILE, else `~/.pg_service.conf`, else the system's `pg_service.conf`.
pub(crate) fn load(service: &str, environment: &Environment) -> Result<Vec<(String, String)>, ConninfoError> {
    let named = environment.var("PGSERVICEFILE")?.map(PathBuf::from);
    let is_named = named.is_some();
    let own = named.or_else(|| environment.home.as_ref().map(|home| home.join(".pg_service.conf")));
    let first = own.clone().unwrap_or_else(|| PathBuf::from("~/.pg_service.conf"));
    if let Some(path) = own.filter(|path| is_named || path.exists()) {
        if let Some(settings) = read_group(&path, service)? {
            return Ok(settings);
        }
    }
    let system = match environment.var("PGSYSCONFDIR")? {
        Some(directory) => Some(PathBuf::from(directory)),
        None => environment.system_configuration.clone(),
    };
    let system = system.map(|directory| directory.join("pg_service.conf")).filter(|path| path.exists());
    if let Some(path) = system {
        if let Some(settings) = read_group(&path, service)? {
            return Ok(settings);
        }
    }
    Err(ConninfoError::ServiceUnknown { service: service.to_owned(), file: first.display().to_string() })
}

fn read_group(path: &Path, service: &str) -> Result<Option<Vec<(String, String)>>, ConninfoError> {
    let content = std::fs::read(path).map_err(|_| ConninfoError::ServiceFile { path: path.to_path_buf() })?;
    let content = String::from_utf8(content)
        .map_err(|_| ConninfoError::NotUtf8 { place: format!("service file {}", path.display()) })?;
    group(&content, service).map_err(|line| ConninfoError::ServiceSyntax { path: path.to_path_buf(), line })
}

/// The settings in a service's section; of two sections with one name the first counts, and in it the first value.
fn group(content: &str, service: &str) -> Result<Option<Vec<(String, String)>>, usize> {
    let mut settings: Option<Vec<(String, String)>> = None;
    for (index, line) in content.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            if settings.is_some() {
                break;
            }
            let name = header.strip_prefix(service).filter(|rest| rest.starts_with(']'));
            settings = name.map(|_| Vec::new());
        } else if let Some(settings) = &mut settings {
            let (keyword, value) = line.split_once('=').ok_or(index + 1)?;
            if keyword == "service" || !is_keyword(keyword) {
                return Err(index + 1);
            }
            if !settings.iter().any(|(known, _)| known == keyword) {
                settings.push((keyword.to_owned(), value.to_owned()));
            }
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# comment\n[other]\nhost=elsewhere\n\n [mydb] \n  host=somehost \nport=5433\nhost=second\n[mydb]\nuser=late\n";

    #[test]
    fn a_section_ends_at_the_next_header_and_the_first_value_counts() {
        let settings = group(FILE, "mydb").unwrap().unwrap();
        let expected = [("host", "somehost"), ("port", "5433")];
        assert_eq!(settings, expected.map(|(keyword, value)| (keyword.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_service_is_found_by_its_whole_name() {
        assert_eq!(group(FILE, "my"), Ok(None));
        assert_eq!(group(FILE, "mydb2"), Ok(None));
    }

    #[test]
    fn lines_that_are_not_settings_are_named_by_number() {
        assert_eq!(group("[a]\nhost\n", "a"), Err(2));
        assert_eq!(group("[a]\n\nservice=b\n", "a"), Err(3));
        assert_eq!(group("[a]\nhots=b\n", "a"), Err(2));
        assert_eq!(group("[b]\nnonsense\n[a]\nhost=x\n", "a").unwrap().unwrap().len(), 1);
    }

    #[test]
    fn the_users_file_comes_before_the_systems_and_a_named_file_before_both() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path(".pg_service.conf"), "[s]\nhost=own\n").unwrap();
        std::fs::write(path("pg_service.conf"), "[s]\nhost=system\n[only]\nhost=system\n").unwrap();
        std::fs::write(path("named"), "[s]\nhost=named\n").unwrap();
        let mut environment = Environment::with_variables([("PGSYSCONFDIR", path(""))]);
        environment.home = Some(path(""));
        let host = |environment: &Environment, service| load(service, environment).map(|mut s| s.remove(0).1);
        assert_eq!(host(&environment, "s").as_deref(), Ok("own"));
        assert_eq!(host(&environment, "only").as_deref(), Ok("system"));
        let unknown = |environment: &Environment| host(environment, "none").unwrap_err().to_string();
        assert!(
            unknown(&environment).contains("/.pg_service.conf, or name another"),
            "{}",
            unknown(&environment)
        );
        environment.set("PGSERVICEFILE", path("named"));
        assert!(unknown(&environment).contains("/named, or name another"), "{}", unknown(&environment));
        assert_eq!(host(&environment, "s").as_deref(), Ok("named"));
        environment.set("PGSERVICEFILE", path("absent"));
        assert_eq!(host(&environment, "s"), Err(ConninfoError::ServiceFile { path: path("absent") }));
    }
}
