use anyhow::{Context, Result, bail};
use onetrip_embed::{EmbedError, Login, ServeOptions, Server, User};

use crate::args::ServeCommandOptions;
use crate::exit::ExitCode;
use crate::memory;
use crate::stop::Waiter;

/// `onetrip serve`.
pub(crate) fn serve(options: &ServeCommandOptions) -> Result<ExitCode> {
    memory::keep_small();
    let mut serve = ServeOptions { listen: options.listen, ..ServeOptions::new(&options.database) };
    match (&options.user, &options.password_file) {
        (Some(name), Some(path)) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let password = text.lines().next().unwrap_or_default().to_owned();
            if password.is_empty() {
                bail!("{}: its first line is the password, and that is empty", path.display());
            }
            serve.login = Login::Scram(vec![User { name: name.clone(), password }]);
        }
        _ if !options.listen.ip().is_loopback() => {
            bail!(
                "without --user and --password-file everybody is let in: listen at a loopback address, or give both"
            );
        }
        _ => {}
    }
    let mut stop = Waiter::new()?;
    let server = Server::start(serve).map_err(|error| match error {
        EmbedError::Listen(_) => anyhow::Error::new(error).context(options.listen.to_string()),
        error => error.into(),
    })?;
    let (file, address) = (options.database.display(), server.local_addr());
    eprintln!("onetrip: {file} served at {address}; Ctrl-C stops");
    stop.wait();
    let stats = server.stop()?;
    eprintln!("onetrip: {} connections served", stats.connections);
    Ok(ExitCode::SUCCESS)
}
