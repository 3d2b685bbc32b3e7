//! `cargo run -p onetrip-embed --example serve -- FILE ADDRESS [USER PASSWORD]`: serves a file until killed.

use std::net::TcpListener;

use onetrip_embed::{Durability, Login, ServeOptions, Shutdown, User, serve};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which file?")?;
    let listener = TcpListener::bind(arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned()))?;
    let mut options = ServeOptions { durability: Durability::Normal, ..ServeOptions::new(file) };
    if let (Some(name), Some(password)) = (arguments.next(), arguments.next()) {
        options.login = Login::Scram(vec![User { name, password }]);
    }
    println!("{}", listener.local_addr()?);
    serve(options, listener, &Shutdown::new()?)?;
    Ok(())
}
