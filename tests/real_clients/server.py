"""The CtrlB server that the clients speak to, as the tests' people and other agents use it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from ctrlb.domain.rows import Dataset, SessionRow
from ctrlb.laptop import WORKSPACE
from ctrlb.wiring import embedded
from tests.acceptance.calls import MAX_SEQ, RUNS, Json, answered, claim, eventually, records
from tests.laptop import Laptop
from tests.laptop_mode.conftest import DEFAULTS, client, running

DATASET = Dataset(WORKSPACE, "agent_sessions")
PAGE = 50
"""Rows that the contract gives at most in one answer."""
ALL_CHARS = 1_000_000


@dataclass(frozen=True)
class Server:
    """A laptop-mode server, a client with its key, and its signed-in person."""

    laptop: Laptop
    http: httpx2.Client
    person: httpx2.Client

    @property
    def environ(self) -> dict[str, str]:
        """What a user exports to use it."""
        return {"CTRLB_URL": self.laptop.url, "CTRLB_KEY": self.laptop.key}

    def enforce(self, mode: str) -> None:
        """Set the enforce mode, as a person."""
        assert answered(self.person.put("/ai/relay/settings", json={"enforce": mode}))["enforce"] == mode

    def reset(self) -> None:
        """Set every setting to its default, as a person."""
        assert answered(self.person.put("/ai/relay/settings", json=DEFAULTS)) == DEFAULTS

    def held_by(self, run: str, agent: str, resource: str) -> None:
        """Let an agent claim the resource."""
        assert claim(self.http, run, agent, resource)["held"] is True

    def events(self, run: str) -> list[Json]:
        """What `peers` lists of the run, newest first."""
        found: list[Json] = answered(self.http.get(f"{RUNS}/{run}/peers", params={"limit": 500}))["events"]
        return found

    def records(self, session_id: str) -> list[Json]:
        """Every row of the session that the contract's call gives, page after page."""
        found: list[Json] = []
        seq_from = 0
        while page := records(self.http, session_id, seq_from, MAX_SEQ):
            found.extend(row for row in page if row not in found[-PAGE:])
            if len(page) < PAGE:
                break
            seq_from = page[-1]["seq"]
        return found

    def rows(self, session_id: str) -> list[SessionRow]:
        """Every row of the session with all its columns, as the store beside the server has them."""
        with embedded(self.laptop.folder) as ports:
            return ports.sessions.rows(DATASET, session_id, 0, MAX_SEQ, 10_000, ALL_CHARS)

    def rows_up_to(self, session_id: str, text: str) -> list[SessionRow]:
        """Every row of the session, once one of them has this body: what a client leaves behind may take a moment."""

        def look() -> list[SessionRow]:
            rows = self.rows(session_id)
            assert text in [row.body for row in rows]
            return rows

        return eventually(look)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Serve the folder until the tests end."""
    with running(folder) as laptop, client(laptop, laptop.key) as http:
        answer = httpx2.post(f"{laptop.url}/ai/sign-in", json={"code": laptop.sign_in_code})
        with client(laptop, str(answered(answer)["token"])) as person:
            yield Server(laptop, http, person)
