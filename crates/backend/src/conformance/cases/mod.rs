//! The cases, one module for each subject. Each is an async function of a [`super::Place`].

pub mod adoption;
pub mod claims;
pub mod descriptors;
pub mod environment;
pub mod exec;
pub mod exits;
pub mod files;
pub mod floods;
pub mod freezing;
pub mod input;
pub mod lifecycle;
pub mod listing;
pub mod offsets;
pub mod pending;
pub mod refusals;
pub mod resize;
pub mod signals;
pub mod stop;
pub mod trees;
pub mod usage;

/// The list of all cases, each under the kinds of session that it makes sense for.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    () => {
        $crate::conformance_suite! { @cases
            adoption {
                tty:
                    a_live_session_is_found_again
                    closing_ends_no_session
                    connections_share_a_session
                    an_ended_session_is_found_with_its_record
                    a_stranger_is_not_taken_for_it;
                pipes:
                    a_live_session_is_found_again
                    closing_ends_no_session
                    connections_share_a_session
                    an_ended_session_is_found_with_its_record
                    a_stranger_is_not_taken_for_it;
            }
            claims {
                tty:
                    it_is_available
                    what_is_absent_says_so;
                pipes:
                    it_is_available
                    what_is_absent_says_so;
            }
            descriptors {
                tty:
                    only_three_are_open
                    signals_are_at_their_defaults;
                pipes:
                    only_three_are_open
                    signals_are_at_their_defaults;
            }
            environment {
                tty:
                    variables_are_exact
                    arguments_are_exact
                    directories_are_exact
                    the_terminal_is_the_commands_own;
                pipes:
                    variables_are_exact
                    arguments_are_exact
                    directories_are_exact
                    the_terminal_is_the_commands_own;
            }
            exec {
                tty:
                    a_command_runs_beside
                    a_terminal_is_its_own
                    codes_are_those_of_a_shell
                    it_ends_with_the_session
                    not_after_the_end;
                pipes:
                    a_command_runs_beside
                    a_terminal_is_its_own
                    codes_are_those_of_a_shell
                    it_ends_with_the_session
                    not_after_the_end;
            }
            exits {
                tty:
                    codes_are_exact
                    signals_are_exact
                    fast_commands_are_whole
                    a_megabyte_before_the_end_is_whole
                    times_are_sane;
                pipes:
                    codes_are_exact
                    signals_are_exact
                    fast_commands_are_whole
                    a_megabyte_before_the_end_is_whole
                    times_are_sane;
            }
            files {
                tty:
                    what_goes_in_comes_out
                    what_is_not_there_is_said;
                pipes:
                    what_goes_in_comes_out
                    what_is_not_there_is_said;
            }
            floods {
                tty:
                    fifty_megabytes_are_exact
                    nobody_reads
                    every_byte_value
                    dropped_bytes_are_a_gap
                    an_endless_line;
                pipes:
                    fifty_megabytes_are_exact
                    nobody_reads
                    every_byte_value
                    dropped_bytes_are_a_gap
                    an_endless_line;
            }
            freezing {
                tty:
                    it_stands_still_and_goes_on;
                pipes:
                    it_stands_still_and_goes_on;
            }
            input {
                tty:
                    echo_round_trip
                    early_input_is_kept
                    a_mebibyte_arrives_whole
                    unread_input_blocks_nothing
                    writes_do_not_mix
                    an_ended_session_takes_no_input
                    close_ends_the_input;
                pipes:
                    echo_round_trip
                    early_input_is_kept
                    a_mebibyte_arrives_whole
                    unread_input_blocks_nothing
                    writes_do_not_mix
                    an_ended_session_takes_no_input
                    close_ends_the_input;
            }
            lifecycle {
                tty:
                    the_ticket_is_there_first
                    a_session_lives_and_ends
                    a_second_run_continues_the_log;
                pipes:
                    the_ticket_is_there_first
                    a_session_lives_and_ends
                    a_second_run_continues_the_log;
            }
            listing {
                tty:
                    ours_are_listed
                    what_was_cleared_away_is_gone
                    names_that_begin_alike;
                pipes:
                    ours_are_listed
                    what_was_cleared_away_is_gone
                    names_that_begin_alike;
            }
            offsets {
                tty:
                    any_offset_gives_the_rest
                    readers_agree
                    the_end_wakes_readers
                    streams_are_told_apart;
                pipes:
                    any_offset_gives_the_rest
                    readers_agree
                    the_end_wakes_readers
                    streams_are_told_apart;
            }
            pending {
                tty:
                    unread_input_is_counted
                    the_mode_is_the_terminals
                    queued_input_is_counted;
                pipes:
                    unread_input_is_counted
                    the_mode_is_the_terminals
                    queued_input_is_counted;
            }
            refusals {
                tty:
                    a_missing_command
                    a_command_that_is_not_in_its_path
                    a_command_is_found_by_its_path
                    a_command_that_is_none
                    arguments_that_are_too_long
                    a_directory_that_is_none
                    a_refused_second_run_keeps_the_log;
                pipes:
                    a_missing_command
                    a_command_that_is_not_in_its_path
                    a_command_is_found_by_its_path
                    a_command_that_is_none
                    arguments_that_are_too_long
                    a_directory_that_is_none
                    a_refused_second_run_keeps_the_log;
            }
            resize {
                tty:
                    sizes_reach_the_command
                    sizes_are_made_sane
                    only_terminals_that_live;
                pipes:
                    only_terminals_that_live;
            }
            signals {
                tty:
                    trapped_signals_arrive
                    trees_are_signalled_on_demand
                    deadly_signals_end_it
                    what_is_no_signal;
                pipes:
                    trapped_signals_arrive
                    trees_are_signalled_on_demand
                    deadly_signals_end_it
                    what_is_no_signal;
            }
            stop {
                tty:
                    a_polite_command_keeps_its_code
                    a_stubborn_command_is_killed
                    no_grace_kills_at_once
                    an_ended_session_keeps_its_record
                    stops_agree
                    a_stop_overtakes_input
                    a_descendant_holds_up_nothing;
                pipes:
                    a_polite_command_keeps_its_code
                    a_stubborn_command_is_killed
                    no_grace_kills_at_once
                    an_ended_session_keeps_its_record
                    stops_agree
                    a_stop_overtakes_input
                    a_descendant_holds_up_nothing;
            }
            trees {
                tty:
                    hostile_trees_end
                    hostile_trees_are_killed
                    children_get_their_grace;
                pipes:
                    hostile_trees_end
                    hostile_trees_are_killed
                    children_get_their_grace;
            }
            usage {
                tty:
                    stats_are_plausible
                    a_limit_on_processes
                    a_limit_on_memory
                    a_limit_on_processors;
                pipes:
                    stats_are_plausible
                    a_limit_on_processes
                    a_limit_on_memory
                    a_limit_on_processors;
            }
        }
    };
}
