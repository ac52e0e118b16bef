//! Decides which command runs in a container.

use wharf_model::{Container, Text};

use crate::image::Image;

/// The command where neither the caller nor the image names one.
const SHELL: &str = "/bin/sh";

/// The caller's command, or else the image's, or else a shell. The caller's entry point precedes the caller's
/// command, and replaces all that the image says.
pub(crate) fn command_line(container: &Container, image: &Image, named: Vec<Text>) -> Vec<Text> {
    let words = match (container.image_command, &container.entrypoint) {
        (true, None) => image.command.clone(),
        (true, Some(_)) => Vec::new(),
        (false, _) => named,
    };
    let words: Vec<Text> = container.entrypoint.iter().cloned().chain(words).collect();
    if words.is_empty() { vec![SHELL.into()] } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_is_named_or_the_images_or_a_shell() {
        let image = |words: &[&str]| Image {
            command: words.iter().map(|word| Text::from(*word)).collect(),
            ..Image::default()
        };
        let run = |image_command: bool, entrypoint: Option<&str>, own: &[&str], named: &[&str]| {
            let container =
                Container { image_command, entrypoint: entrypoint.map(Text::from), ..Container::of("a") };
            let named = named.iter().map(|word| Text::from(*word)).collect();
            let words = command_line(&container, &image(own), named);
            words.iter().map(|word| word.lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(run(true, None, &["/entry", "serve"], &[]), ["/entry", "serve"]);
        // The command that an earlier start took from the image does not count.
        assert_eq!(run(true, None, &["/entry", "serve"], &["old"]), ["/entry", "serve"]);
        assert_eq!(run(true, None, &[], &[]), ["/bin/sh"]);
        assert_eq!(run(false, None, &["/entry", "serve"], &["ls"]), ["ls"]);
        assert_eq!(run(false, Some("/own"), &["/entry", "serve"], &["ls"]), ["/own", "ls"]);
        assert_eq!(run(true, Some("/own"), &["/entry", "serve"], &[]), ["/own"]);
    }
}
