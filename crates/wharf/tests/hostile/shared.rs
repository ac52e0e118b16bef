//! Sessions that share a container: a neighbour can harm what is beside it, and nothing of this host.

use crate::place::{COMMAND_TIMEOUT, Place, UNTOUCHED, at};

at! { a_neighbour_leads_no_prompt_into_a_file_of_the_host:
    docker = Place::new(Shared(Docker)),
    podman = Place::new(Shared(Podman)),
}

fn a_neighbour_leads_no_prompt_into_a_file_of_the_host(place: &Place) {
    place.healthy("victim");
    let (untouched, prompt) = (place.text("private/untouched"), place.write("prompt", "owned by a prompt\n"));
    place.attack("evil", &[], &["neighbours", &untouched]);
    let (place_options, prompt) = (place.options(), prompt.display().to_string());
    let mut args = vec!["run", "-d", "--name", "asked", "--prompt-file", &prompt];
    args.extend(place_options.iter().map(String::as_str));
    args.extend(["--", "sleep", "600"]);
    place.ok(&args);
    for round in 0..10 {
        // A start may fail in such company.
        place.within(COMMAND_TIMEOUT, &["kill", "asked"]);
        place.within(COMMAND_TIMEOUT, &["restart", "asked"]);
        assert_eq!(std::fs::read_to_string(&untouched).expect("it is there"), UNTOUCHED, "round {round}");
    }
    place.must_be_well("victim");
    place.must_be_untouched();
    place.clear();
}
