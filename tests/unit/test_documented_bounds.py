"""The limits, cuts and times that the documents state are those of the code."""

import pytest

from ctrlb import claims, notes, ports, runs, sessions, sign_in
from ctrlb.adapters import oidc_answers, oidc_issuer, sqlite_database, sqlite_readers
from ctrlb.domain import claim_detectors, claim_rules, ids, resource_keys, rows, session_rules, session_text, words
from ctrlb.edge import http, limits, local, local_protocol, log_file
from ctrlb.models import fields
from tests.documents import PROJECT

SAID = "".join((PROJECT / "docs" / f"{name}.md").read_text() for name in ("api", "operating", "security"))
BOUNDS = [
    ("1 to {:,} printable characters", ids.MAX_ID_CHARS),
    ("4 MiB ({:,} bytes)", http.MAX_BODY_BYTES),
    ("at most {:,} members in one body", http.MAX_GZIP_MEMBERS),
    ("reach at most {:,} together", session_text.MAX_COUNTED),
    ("with {:,} characters around each hit", session_text.SNIPPET_CHARS),
    ("a word of {} to", words.MIN_WORD),
    ("a word of 3 to {} letters", words.MAX_WORD),
    ("body; cut at {:,} characters", sessions.ACTION_TEXT_CHARS),
    ("| Cut at {:,} characters", sessions.SHOWN_TEXT_CHARS),
    ("of one over {:,} characters, the first paths that fit", sessions.SHOWN_TEXT_CHARS),
    ("of one over 4,000 characters, {:,} around the text", sessions.SHOWN_TEXT_CHARS),
    ("At most {:,} rows, by `seq`", sessions.FETCH_ROWS),
    ("At most {:,} rows are\nlooked through", sessions.READ_AHEAD_ROWS),
    ("at most {:,} after the last call", session_rules.RESULTS_WITHIN_ROWS),
    ("Not empty; cut at {:,} characters", notes.NOTE_CHARS),
    ("| Cut at {:,} characters |\n| `events[].age_s`", ports.PREVIEW_CHARS),
    ("You may have {:,} keys", ports.MAX_LIVE_KEYS),
    ("A person has at most {:,} that are neither", ports.MAX_LIVE_KEYS),
    ("neither revoked nor expired | {:,}; one more", ports.MAX_LIVE_KEYS),
    ("cannot be decided within {:.0f} seconds", claims.CALL_BUDGET_S),
    ("others are let in {:.0f} ms later", claim_rules.MAX_CLOCK_SKEW_US / 1_000),
    ("more than {:,} characters are 400", resource_keys.MAX_CHARS),
    ("1 to {} letters or digits", resource_keys.MAX_EXTENSION_CHARS),
    ("One call looks at {:,} runs", runs.RUNS_READ),
    ("wrote to it; {} when there are that many", rows.COUNTED_AGENTS),
    ("The {:,} that wrote last", runs.RUN_AGENTS),
    ("its last {:,} sessions", runs.AGENT_SESSIONS),
    ("The newest {:,} events", runs.RUN_EVENTS),
    ("The events take at\nmost {:.0f} kB", fields.MAX_LIST_BYTES / 1_000),
    ("lists takes at most {:.0f} kB", fields.MAX_LIST_BYTES / 1_000),
    ("The {:,} resources", runs.RUN_RESOURCES),
    ("the newest {:,} are compared", runs.RUN_EDITS),
    ("read from the newest {:,} events", runs.RUN_EVENTS),
    ("refused on one key {} times or more", claim_detectors.REFUSED_AGAIN),
    ("what is less than {:.0f} seconds apart", claim_detectors.CLOCK_SLACK_US / 1_000_000),
    ("at most their {} newest edits", claim_detectors.SHOWN_ROWS),
    ("| A sign-in code | {:.0f} minutes", sign_in.CODE_US / 60_000_000),
    ("| A person's session | {:.0f} hours", sign_in.SESSION_US / 3_600_000_000),
    ("under way at once | {}; more wait", local.THREADS),
    ("of more than {} the others are 503", local.MAX_REQUESTS),
    ("connection is ended after {:.0f} s", local_protocol.PATIENCE_S),
    ("which get {} seconds", local.SHUTDOWN_S),
    ("beside the server say | 503 after {:.0f} s", sqlite_database.BUSY_TIMEOUT_MS / 1_000),
    ("another read that takes long | 503 after {:.0f} s", sqlite_readers.READ_BUDGET_S),
    ("A token over {:,} characters", oidc_issuer.MAX_TOKEN_CHARS),
    ("may\n  differ by {} seconds", oidc_issuer.LEEWAY_S),
    ("at most every {:.0f} seconds; `jku`", oidc_answers.ASK_EVERY_S),
    ("A process counts what it sees, {:,} names", limits.MAX_COUNTED),
    ("has {:,.0f} requests a second", limits.DEFAULT_REQUESTS_PER_S),
    ("and {:,.0f} at once after a\npause", limits.DEFAULT_REQUESTS_PER_S * limits.BURST_S),
    ("{} credentials a second may be refused", limits.REFUSALS.per_s),
    ("be refused, {} at once after", limits.REFUSALS.burst),
    ("written every {} s", log_file.WRITE_EVERY_S),
    ("At {:.0f} MB the file is set aside", log_file.FILE_BYTES / 1_000_000),
    ("`ctrlb.log.1` to `ctrlb.log.{}`", log_file.FILES_KEPT),
]
"""What a document says of a bound, and the bound in the code."""


@pytest.mark.parametrize(("saying", "bound"), BOUNDS)
def test_bounds_are_those_of_the_code(saying: str, bound: float) -> None:
    assert saying.format(bound) in SAID
