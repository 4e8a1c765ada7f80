//! Every functional requirement of the specification, and the tests that show it.

use std::path::Path;

/// `file::function`, the file being one of this folder unless it names another.
const SHOWN_BY: [(u32, &[&str]); 42] = [
    (
        1,
        &["tool_list::six_tools_in_a_fixed_order_in_less_than_8_kilobytes"],
    ),
    (
        2,
        &["tool_list::six_tools_in_a_fixed_order_in_less_than_8_kilobytes"],
    ),
    (
        3,
        &["tool_list::six_tools_in_a_fixed_order_in_less_than_8_kilobytes"],
    ),
    (
        4,
        &["intent_matrix::the_removed_call_tool_names_its_successors"],
    ),
    (
        5,
        &[
            "tool_list::the_schema_shows_the_intent_in_the_form_of_the_mode",
            "losslessness::arguments_reach_the_upstream_unchanged",
        ],
    ),
    (
        6,
        &["tool_list::the_schema_shows_the_intent_in_the_form_of_the_mode"],
    ),
    (7, &["intent_matrix::messages_are_fixed"]),
    (8, &["intent_matrix::every_row_of_the_matrix"]),
    (
        9,
        &[
            "intent_matrix::messages_are_fixed",
            "intent_matrix::every_form_of_an_intent_is_understood",
        ],
    ),
    (
        10,
        &[
            "intent_matrix::messages_are_fixed",
            "intent_matrix::every_form_of_an_intent_is_understood",
        ],
    ),
    (11, &["intent_matrix::every_row_of_the_matrix"]),
    (12, &["intent_matrix::codes_and_details_are_for_programs"]),
    (13, &["intent_matrix::codes_and_details_are_for_programs"]),
    (14, &["intent_matrix::messages_are_fixed"]),
    (
        15,
        &["intent_matrix::annotations_are_checked_again_at_call_time"],
    ),
    (16, &["intent_matrix::every_row_of_the_matrix"]),
    (17, &["intent_matrix::every_row_of_the_matrix"]),
    (18, &["intent_matrix::every_row_of_the_matrix"]),
    (19, &["intent_matrix::every_row_of_the_matrix"]),
    (20, &["intent_matrix::every_row_of_the_matrix"]),
    (
        21,
        &["retrieve_tools::guidance_is_there_whatever_the_detail"],
    ),
    (
        22,
        &["retrieve_tools::an_answer_has_its_fixed_shape_as_text_and_as_structure"],
    ),
    (
        23,
        &["retrieve_tools::the_recommended_lane_follows_the_annotations"],
    ),
    (
        24,
        &["retrieve_tools::an_answer_has_its_fixed_shape_as_text_and_as_structure"],
    ),
    (25, &["tool_list::descriptions_say_which_lane_is_for_what"]),
    (26, &["cli_call::each_command_calls_on_its_lane"]),
    (27, &["cli_call::each_command_calls_on_its_lane"]),
    (28, &["cli_call::each_command_calls_on_its_lane"]),
    (29, &["cli_call::each_command_calls_on_its_lane"]),
    (30, &["cli_call::reason_and_sensitivity_are_checked"]),
    (
        31,
        &[
            "../activity/intent::the_whole_intent_is_stored",
            "../activity/intent::every_form_of_an_intent_is_stored_alike",
        ],
    ),
    (32, &["../activity/intent::the_variant_is_stored"]),
    (
        33,
        &["../activity/intent::records_are_found_by_operation_type"],
    ),
    (
        34,
        &["../activity/intent::the_list_shows_the_operation_type_as_letter_and_word"],
    ),
    (
        35,
        &["../activity/intent::the_list_shows_the_operation_type_as_letter_and_word"],
    ),
    (
        36,
        &["../activity/intent::showing_a_record_has_a_section_for_the_intent"],
    ),
    (
        37,
        &["../activity/intent::json_and_yaml_have_the_whole_intent"],
    ),
    (38, &["../activity/intent::rest_answers_have_the_intent"]),
    (
        39,
        &["../activity/intent::records_are_found_by_operation_type"],
    ),
    (
        40,
        &[
            "intent_matrix::messages_are_fixed",
            "bad_input::unknown_names_get_a_suggestion",
        ],
    ),
    (
        41,
        &["intent_matrix::without_strict_validation_annotations_only_warn"],
    ),
    (
        42,
        &["intent_matrix::without_strict_validation_annotations_only_warn"],
    ),
];

#[test]
fn every_requirement_is_named_once() {
    let numbers: Vec<u32> = SHOWN_BY.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=42).collect::<Vec<u32>>());
}

#[test]
fn every_named_test_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e");
    for (number, tests) in SHOWN_BY {
        assert!(!tests.is_empty(), "FR-{number:03}");
        for test in tests {
            let (file, function) = test.split_once("::").unwrap();
            let source = std::fs::read_to_string(folder.join(format!("{file}.rs")))
                .unwrap_or_else(|error| panic!("FR-{number:03}, {test}: {error}"));
            let signature = format!("#[tokio::test]\nasync fn {function}() {{");
            assert!(
                source.contains(&signature),
                "FR-{number:03} names {test}, which is no test"
            );
        }
    }
}
