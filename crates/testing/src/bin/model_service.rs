//! `wharf-model-service [--port PORT] [--log FILE] [--dump DIR]`: the model service of the tests, for a look by hand.

use std::process::ExitCode;

use wharf_testing::service::{ModelService, Settings};

fn main() -> ExitCode {
    match serve(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("wharf-model-service: {message}");
            ExitCode::FAILURE
        }
    }
}

fn serve(mut words: impl Iterator<Item = String>) -> Result<(), String> {
    let mut settings = Settings::default();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        match word.as_str() {
            "--port" => settings.port = value.parse().map_err(|error| format!("--port {value}: {error}"))?,
            "--log" => settings.log = Some(value.into()),
            "--dump" => settings.dump = Some(value.into()),
            _ => return Err(format!("{word:?} is not understood")),
        }
    }
    let service = ModelService::start(settings).map_err(|error| format!("cannot listen: {error}"))?;
    println!("{}", service.url());
    // It serves until it is killed.
    loop {
        std::thread::park();
    }
}
