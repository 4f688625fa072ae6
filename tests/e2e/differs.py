"""A plugin for pytest: leave out what the emulator cannot pass because it is unlike AWS, each with the difference."""

import re

import pytest

SLASH = "It answers 404 to %2F in a path, which AWS decodes."
PATH = "It decodes a path loosely: what is no UTF-8 becomes another character, and %25 stays as it is."
TEXT = "It takes a body that says it is JSON for text, so bytes that are none arrive changed; AWS sends them as base64."
LOAD = "It runs each call under way in a process of its own, and 16 at once keep each other past a call's time."
PREFLIGHT = "An API that knows the origin of a console answers OPTIONS itself; in AWS that is so too."

DIFFERS = {
    r"/test_bad_input\.py::test_what_is_no_id_in_a_path_is_refused_by_its_name\[.*-slash\]": SLASH,
    r"/test_bad_input\.py::test_an_address_that_is_not_utf8_is_refused\[.*/(peers|posts)\]": PATH,
    r"/test_records\.py::test_a_session_id_may_hold_any_printable_characters\[100%\]": PATH,
    r"/test_bad_input\.py::test_a_body_that_is_not_json_is_a_parse_error\[not UTF-8-": TEXT,
    r"/test_bad_input\.py::test_a_gzip_body_is_read\[": TEXT,
    r"/test_bad_input\.py::test_a_body_that_is_broken_or_too_large_is_refused_in_the_one_shape\[a bomb\]": TEXT,
    r"/test_many_calls\.py::test_(agents_of_both_eras|of_agents_that_claim_one_file)": LOAD,
    r"/test_errors\.py::test_another_method_is_refused_and_the_right_ones_are_named\[OPTIONS-": PREFLIGHT,
    r"/test_protocol\.py::test_other_methods_than_post_are_refused_with_allow\[OPTIONS\]": PREFLIGHT,
}
"""By a pattern of the tests' ids."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip them. A pattern that finds no test is a fault: the test has another name now, or is gone."""
    for pattern, reason in DIFFERS.items():
        found = [item for item in items if re.search(pattern, item.nodeid)]
        if not found and not config.option.keyword:
            raise pytest.UsageError(f"no test is called {pattern}")
        for item in found:
            item.add_marker(pytest.mark.skip(reason=reason))
