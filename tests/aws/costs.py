"""`python -m tests.aws.costs`: count what each operation costs in AWS, and write the table in docs/costs.md.

The operations run as they are deployed, on moto instead of AWS, for a caller who is known from a call before.
"""

import os
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctrlb.adapters.aws_client import DYNAMODB_CONFIG, connect
from ctrlb.adapters.dynamodb_identity import DynamodbIdentity
from ctrlb.adapters.dynamodb_items import Item
from ctrlb.adapters.dynamodb_projections import DynamodbProjections, relay_fact, session_fact
from ctrlb.adapters.dynamodb_relay import DynamodbRelay
from ctrlb.adapters.dynamodb_runs import DynamodbRuns
from ctrlb.adapters.dynamodb_sessions import DynamodbSessions
from ctrlb.adapters.dynamodb_table import Table
from ctrlb.adapters.identity_cache import CachedIdentity
from ctrlb.adapters.search_off import SearchOff
from ctrlb.adapters.system import SystemClock, SystemRandomness
from ctrlb.answers import Fields, answer
from ctrlb.domain.access import ROLES, Caller
from ctrlb.domain.projections import Fact, SessionFact, project
from ctrlb.domain.rows import Audit, Member, Settings
from ctrlb.edge.identity import identify
from ctrlb.keys import create_key
from ctrlb.models import CreateKeyRequest
from ctrlb.operations import OPERATIONS
from ctrlb.ports import Ports
from tests.aws.emulator import REGION
from tests.aws.meter import Cost, Meter
from tests.aws.stores import client, made_bucket, made_table, table_name
from tests.template import ROOT

PAGE = ROOT / "docs" / "costs.md"
BEGIN = "<!-- table: written by `make costs` -->"
END = "<!-- end of table -->"
HEAD = (
    "| operation | store calls | write units | read units | sent | received | $ per million |\n"
    "|---|---|--:|--:|--:|--:|--:|\n"
)
WRITE_UNIT_USD_PER_MILLION = 0.625
READ_UNIT_USD_PER_MILLION = 0.125
"""On demand, in us-east-1."""
ROW_BODY_CHARS = 1_300
_OPERATIONS = {operation.name: operation for operation in OPERATIONS}


@dataclass(frozen=True)
class Counted:
    """What one call of an operation cost."""

    name: str
    cost: Cost

    def line(self) -> str:
        """The operation's row of the table."""
        calls = ", ".join(f"{count} {call}" for call, count in sorted(self.cost.calls.items())) or "none"
        units = self.cost.write_units * WRITE_UNIT_USD_PER_MILLION + self.cost.read_units * READ_UNIT_USD_PER_MILLION
        columns = [self.name, calls, f"{self.cost.write_units:,}", f"{self.cost.read_units:,g}"]
        columns += [_rounded(self.cost.sent_bytes), _rounded(self.cost.received_bytes), f"{units:,.2f}"]
        return f"| {' | '.join(columns)} |\n"


class Deployment:
    """The operations on the stores of AWS, with a meter on their client."""

    def __init__(self, folder: Path) -> None:
        """The folder names tables of its own."""
        made_table("RelayTable", folder)
        made_table("SessionsTable", folder)
        dynamodb = connect("dynamodb", DYNAMODB_CONFIG)
        relay = Table(dynamodb, table_name("RelayTable", folder))
        sessions = Table(dynamodb, table_name("SessionsTable", folder))
        clock, randomness = SystemClock(), SystemRandomness()
        identity = DynamodbIdentity(relay, randomness)
        self.ports = Ports(
            relay=DynamodbRelay(relay, clock, randomness),
            runs=DynamodbRuns(relay),
            sessions=DynamodbSessions(sessions, made_bucket(folder), clock),
            index=SearchOff(),
            identity=CachedIdentity(identity, clock),
            clock=clock,
            random=randomness,
        )
        self.projections = DynamodbProjections(relay)
        self._relay, self._sessions = relay.name, sessions.name
        self.meter = Meter(dynamodb)
        person = Caller("acme", "ann", ROLES["Admin"], Settings(wait_ms=1), token_sha256="a person's")
        audit = Audit("acme", clock.now_us(), "ann", "invite_member", before="", after="Admin")
        identity.change_member(None, Member("acme", "ann", "Admin"), None, audit)
        self.person = person
        self.key = create_key(CreateKeyRequest(name="key of a laptop"), person, self.ports).key

    def call(self, operation: str, /, **fields: Any) -> Any:
        """Let the person call the operation, and have what it answers."""
        answered = answer(_OPERATIONS[operation], lambda: self.person, lambda: Fields(fields), self.ports)
        assert answered.status < 400, answered.answer
        return answered.answer

    def relay_facts(self) -> list[Fact]:
        """What the stream of the relay's table has delivered by now."""
        return [relay_fact(each) for each in self._items(self._relay) if "kind" in each]

    def session_facts(self) -> list[SessionFact]:
        """What the stream of the sessions' table has delivered by now, by seq: threads wrote it in any order."""
        items = [each for each in self._items(self._sessions) if "block_type" in each]
        return [session_fact(each, _no_object) for each in sorted(items, key=lambda each: str(each["sk"]))]

    def _items(self, table: str) -> Iterator[Item]:
        for page in client("dynamodb").get_paginator("scan").paginate(TableName=table):
            yield from page["Items"]


def counted(deployment: Deployment) -> Iterator[Counted]:
    """One call of each operation, in the cases that differ."""

    def count(name: str, do: Callable[[], object]) -> Counted:
        deployment.meter.start()
        do()
        counted = Counted(name, deployment.meter.cost)
        deployment.meter.start()  # what comes in between counts for nothing
        return counted

    yield from _relay(deployment, count)
    yield from _sessions(deployment, count)
    yield from _runs(deployment, count)
    yield from _identities(deployment, count)


Count = Callable[[str, Callable[[], object]], Counted]


def _relay(deployment: Deployment, count: Count) -> Iterator[Counted]:
    call, run = deployment.call, {"run_id": "nightly-2026-11-30"}
    ann, bob = {**run, "agent": "agent-a"}, {**run, "agent": "agent-b"}
    yield count("claim: a new key", lambda: call("claim", **ann, resource="src/app.py"))
    yield count("claim: renewed", lambda: call("claim", **ann, resource="src/app.py"))
    yield count("claim: refused", lambda: call("claim", **bob, resource="src/app.py"))
    yield count("check: 1 path, free", lambda: call("check", **ann, paths=["src/free.py"]))
    yield count("check: 1 path, held by another", lambda: call("check", **bob, paths=["src/app.py"]))
    yield count("check: 64 paths, free", lambda: call("check", **ann, paths=[f"src/{n}.py" for n in range(64)]))
    yield count("release", lambda: call("release", **ann, resource="src/app.py"))
    yield count("release: nothing held", lambda: call("release", **ann, resource="src/free.py"))
    yield count("post: 200 characters", lambda: call("post", **ann, text="x" * 200))
    for number in range(40):
        call("post", **ann, text=f"note {number}")
    yield count("peers: 40 events", lambda: call("peers", **run, limit=40))


def _sessions(deployment: Deployment, count: Count) -> Iterator[Counted]:
    def upload(rows: Iterable[dict[str, Any]]) -> Callable[[], object]:
        return lambda: deployment.call("upload_records", records=list(rows))

    yield count("upload_records: 1 row, a new session", upload(_rows(0, 1)))
    yield count("upload_records: 1 row, a session that is there", upload(_rows(1, 1)))
    yield count("upload_records: 500 rows, a session that is there", upload(_rows(2, 500)))
    yield count("upload_records: the same 500 rows again", upload(_rows(2, 500)))
    page = {"session_id": "session-1", "seq_from": 0, "seq_to": 49}
    yield count("fetch_records: 50 rows", lambda: deployment.call("fetch_records", **page))
    yield count("next_actions", lambda: deployment.call("next_actions", session_id="session-1", seq=450))


def _runs(deployment: Deployment, count: Count) -> Iterator[Counted]:
    facts, rows = deployment.relay_facts(), deployment.session_facts()
    yield count("the stream: 1 relay row", lambda: deployment.projections.add(project(facts[:1])))
    yield count("the stream: 100 session rows of a run", lambda: deployment.projections.add(project(rows[:100])))
    deployment.projections.add(project([*facts, *rows[100:200]]))
    for number in range(49):
        deployment.call("post", run_id=f"run-{number:03}", agent="agent-a", text="hello")
    deployment.projections.add(project(deployment.relay_facts()))
    yield count("list_runs: 50 runs, no hold in them", lambda: deployment.call("list_runs"))
    for number in range(5):
        deployment.call("claim", run_id=f"run-{number:03}", agent="agent-a", resource="src/app.py")
    deployment.projections.add(project(deployment.relay_facts()))
    yield count("list_runs: 50 runs, holds in 5", lambda: deployment.call("list_runs"))
    yield count("get_run: 50 events", lambda: deployment.call("get_run", run_id="nightly-2026-11-30"))


def _identities(deployment: Deployment, count: Count) -> Iterator[Counted]:
    call, known = deployment.call, f"Bearer {deployment.key}"
    yield count("a caller who is new here, once in 15 s", lambda: identify(known, deployment.ports))
    yield count("a caller who called before", lambda: identify(known, deployment.ports))
    yield count("get_settings", lambda: call("get_settings"))
    yield count("change_settings", lambda: call("change_settings", enforce="enforce"))
    yield count("create_key", lambda: call("create_key", name="another key"))
    yield count("list_keys: 2 keys", lambda: call("list_keys"))
    key_id = call("list_keys").keys[1].key_id
    yield count("revoke_key", lambda: call("revoke_key", key_id=key_id))
    yield count("invite_member", lambda: call("invite_member", user_name="bob", role="Reader"))
    call("change_role", role="Auditor", permissions=["mcp.use"])
    given = {"user_name": "bob", "role": "Auditor"}
    yield count("change_member: a role of the workspace's own", lambda: call("change_member", **given))
    call("change_member", user_name="bob", role="Reader")
    yield count("remove_role: 2 people", lambda: call("remove_role", role="Auditor"))
    for lease_s in range(60, 110):
        call("change_settings", leaseSeconds=lease_s)
    yield count("list_audit_events: 50 events", lambda: call("list_audit_events"))
    yield count("list_audit_events: 50 events of one person", lambda: call("list_audit_events", user_name="ann"))


def _rows(first: int, count: int) -> Iterator[dict[str, Any]]:
    """Rows as hooks send them: a tool call, its result, and what is said, in turn."""
    words = random.Random(0)
    vocabulary = ["".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=words.randint(2, 10))) for _ in range(2_000)]
    for seq in range(first, first + count):
        call = {
            "block_type": "tool_use",
            "tool_name": "Edit",
            "paths": '["src/app.py"]',
            "tool_use_id": f"call-{seq:05}",
        }
        body = " ".join(words.choices(vocabulary, k=ROW_BODY_CHARS // 4))[:ROW_BODY_CHARS]
        yield {
            "_timestamp": 1_793_000_000_000_000 + seq,
            "session_id": "session-1",
            "seq": seq,
            "run_id": "nightly-2026-11-30",
            "agent": "agent-a",
            "cwd": "/work/app",
            "harness": "claude-code",
            "role": "assistant",
            "body": body,
            **(call if seq % 3 == 0 else {"block_type": "tool_result" if seq % 3 == 1 else "text"}),
        }


def table(lines: Iterable[Counted]) -> str:
    """The table in Markdown."""
    return HEAD + "".join(each.line() for each in lines)


def written_table() -> str:
    """The table as it stands in the document."""
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip() + "\n"


@contextmanager
def deployment(set_variable: Callable[[str, str], object]) -> Iterator[Deployment]:
    """One on moto. `set_variable` sets what the SDK reads of the environment."""
    from moto import mock_aws

    set_variable("AWS_DEFAULT_REGION", REGION)
    with mock_aws(), tempfile.TemporaryDirectory() as folder:
        yield Deployment(Path(folder))


def _rounded(size_bytes: int) -> str:
    """The size in kB to two digits."""
    return f"{float(f'{size_bytes / 1_000:.2g}'):,g} kB"


def _no_object(key: str) -> bytes:
    raise AssertionError(f"no row here needs the object {key}")


def main() -> None:
    """Write the table into the document; the rest of it is written by hand."""
    with deployment(os.environ.__setitem__) as counting:
        counts = table(counted(counting))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{counts}\n{END}{rest.partition(END)[2]}")
    print(counts)


if __name__ == "__main__":
    main()
