//! What is run in a container.

use wharf_model::{Container, Text};

use crate::image::Image;

/// What is run where neither the caller nor the image names a command.
const SHELL: &str = "/bin/sh";

/// What is run: what was named, or else what the image says, or else a shell. An entry point of the caller's own stands
/// before what was named, and in the place of all that the image says.
pub(crate) fn of(container: &Container, image: &Image, named: Vec<Text>) -> Vec<Text> {
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
            let words = of(&container, &image(own), named);
            words.iter().map(|word| word.lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(run(true, None, &["/entry", "serve"], &[]), ["/entry", "serve"]);
        // What an earlier start filled in says nothing of what the image says now.
        assert_eq!(run(true, None, &["/entry", "serve"], &["old"]), ["/entry", "serve"]);
        assert_eq!(run(true, None, &[], &[]), ["/bin/sh"]);
        assert_eq!(run(false, None, &["/entry", "serve"], &["ls"]), ["ls"]);
        assert_eq!(run(false, Some("/own"), &["/entry", "serve"], &["ls"]), ["/own", "ls"]);
        assert_eq!(run(true, Some("/own"), &["/entry", "serve"], &[]), ["/own"]);
    }
}
