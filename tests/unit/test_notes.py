"""What is kept of a note, which `peers` shows only the beginning of."""

import pytest

from ctrlb.domain.rows import Dataset, Run
from ctrlb.models import PostRequest
from ctrlb.notes import post
from ctrlb.ports import Ports
from tests.conftest import caller_named


@pytest.mark.promise("post-cut")
@pytest.mark.parametrize(("sent", "kept"), [(1_999, 1_999), (2_000, 2_000), (2_001, 2_000)])
def test_the_first_2000_characters_of_a_note_are_kept(stores: Ports, sent: int, kept: int) -> None:
    text = "漢" * sent
    post(PostRequest(run_id="nightly", agent="agent-a", text=text), caller_named("ann"), stores)
    (event,) = stores.relay.newest(Run(Dataset("acme", "agent_sessions"), "nightly"), 10)
    assert event.text == text[:kept]
