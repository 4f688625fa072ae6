"""Every key of the two DynamoDB tables, made here and nowhere else.

Ids are joined with their lengths in front, so none can reach into another's. A resource key is hashed, and so is
what would be longer than a key may be: the row carries it in full. Numbers have a fixed width, so text order is theirs.
"""

import hashlib

from ctrlb.domain.rows import Dataset, Holder, Run

MAX_JOINED_BYTES = 900
"""Beyond it ids are hashed: a sort key has at most 1,024 bytes, and a prefix comes in front."""

TIME_DIGITS = 16  # microseconds, to the year 2286
NUMBER_DIGITS = 10
SEQ_DIGITS = 16
BLOCK_DIGITS = 10

BY_TIME = "by_time"
"""The index of what carries `at`."""

CLAIM_PREFIX = "claim#"
EVENT_PREFIX = "event#"
AGENT_PREFIX = "agent#"
RESOURCE_PREFIX = "resource#"
EDIT_PREFIX = "edit#"
KEY_PREFIX = "key#"
KEYS_PREFIX = "keys#"
MEMBER_PREFIX = "member#"
ROLE_PREFIX = "role#"
GIVEN_PREFIX = "given#"
AUDIT_PREFIX = "audit#"
AUDITS_PREFIX = "audits#"
INGEST_PREFIX = "ingest#"
ROW_PREFIX = "row#"
HEAD = "head"
SETTINGS = "settings"
SIGN_IN = "session"
SIGN_IN_CODE = "code"


def joined(*ids: str) -> str:
    """The ids as one text that no other ids give: `4:acme,7:nightly`."""
    text = ",".join(f"{len(part)}:{part}" for part in ids)
    return text if len(text.encode()) <= MAX_JOINED_BYTES else f"sha256:{digest(text)}"


def digest(text: str) -> str:
    """The text's SHA-256, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def fixed(number: int, digits: int) -> str:
    """The number at a fixed width. Raises ValueError when it does not fit."""
    if not 0 <= number < 10**digits:
        raise ValueError(f"{number} is no number of up to {digits} digits")
    return f"{number:0{digits}d}"


def run_pk(run: Run) -> str:
    """Where all of a run lies: its records, its events, and what is projected from them."""
    return f"run#{joined(run.dataset.workspace, run.dataset.name, run.run_id)}"


def claim_prefix(key: str) -> str:
    """What the rows of a resource's record begin with."""
    return f"{CLAIM_PREFIX}{digest(key)}#"


def claim_sk(key: str, number: int) -> str:
    """The place of a row in its resource's record."""
    return claim_prefix(key) + fixed(number, NUMBER_DIGITS)


def claim_number(sk: str) -> int:
    """The number of the claim row that lies there."""
    return int(sk[-NUMBER_DIGITS:])


def event_sk(ts_us: int, name: str) -> str:
    """The place of an event; `name` is its own."""
    return f"{EVENT_PREFIX}{fixed(ts_us, TIME_DIGITS)}#{name}"


def at(ts_us: int, arrival_us: int, name: str) -> str:
    """The place of a row in its run's time: by its own time, then by when it came. `name` is the row's own."""
    return f"{fixed(ts_us, TIME_DIGITS)}#{fixed(arrival_us, TIME_DIGITS)}#{name}"


def time_text(ts_us: int) -> str:
    """What is before every row of this time and after all earlier ones."""
    return fixed(ts_us, TIME_DIGITS)


def time_of(place: str) -> int:
    """The microseconds that `at` or `listed_at` begins with."""
    return int(place[:TIME_DIGITS])


def agent_sk(holder: Holder, session_id: str) -> str:
    """What an agent did in a run: in the relay, where `session_id` is empty, or in one session."""
    return f"{AGENT_PREFIX}{digest(joined(holder.user, holder.agent))}#{digest(session_id) if session_id else ''}"


def resource_sk(key: str) -> str:
    """The last row of a resource's record, as it was projected."""
    return f"{RESOURCE_PREFIX}{digest(key)}"


def edit_sk(session_id: str, seq: int, block_idx: int) -> str:
    """What one session row says of edits, as it was projected."""
    return f"{EDIT_PREFIX}{digest(session_id)}#{fixed(seq, SEQ_DIGITS)}#{fixed(block_idx, BLOCK_DIGITS)}"


def runs_of(dataset: Dataset) -> str:
    """Where the dataset's runs are listed."""
    return f"runs#{joined(dataset.workspace, dataset.name)}"


def edits_of(run: Run) -> str:
    """Where the run's edits are listed."""
    return f"edits#{joined(run.dataset.workspace, run.dataset.name, run.run_id)}"


def failed_calls_of(run: Run) -> str:
    """Where the run's calls that failed are listed, by their results."""
    return f"failed#{joined(run.dataset.workspace, run.dataset.name, run.run_id)}"


def run_listed_at(started_us: int, run_id: str) -> str:
    """The place of a run in the list of its dataset's."""
    return f"{fixed(started_us, TIME_DIGITS)}#{run_id}"


def edit_listed_at(ts_us: int, session_id: str, seq: int, block_idx: int) -> str:
    """The place of a row in the list of its run's edits, or of its failed calls."""
    return f"{fixed(ts_us, TIME_DIGITS)}#{session_id}#{fixed(seq, SEQ_DIGITS)}#{fixed(block_idx, BLOCK_DIGITS)}"


def workspace_pk(workspace: str) -> str:
    """Where a workspace's members, roles, keys, settings and audits lie."""
    return f"workspace#{joined(workspace)}"


def key_sk(key_id: str) -> str:
    """The place of a key."""
    return KEY_PREFIX + joined(key_id)


def key_listed_at(user: str, created_us: int, key_id: str) -> str:
    """The place of a key in the list of its person's, by its age."""
    return f"{keys_of(user)}{fixed(created_us, TIME_DIGITS)}#{key_id}"


def keys_of(user: str) -> str:
    """What the places in the list of a person's keys begin with."""
    return f"{keys_sk(user)}#"


def keys_sk(user: str) -> str:
    """The place of the count of the keys that a person has made."""
    return KEYS_PREFIX + joined(user)


def ingest_sk(credential_id: str) -> str:
    """The place of an ingest credential."""
    return INGEST_PREFIX + joined(credential_id)


def member_sk(user: str) -> str:
    """The place of a person."""
    return MEMBER_PREFIX + joined(user)


def role_sk(name: str) -> str:
    """The place of a role."""
    return ROLE_PREFIX + joined(name)


def given_sk(role: str) -> str:
    """The place of what tells when a role was last given to somebody."""
    return GIVEN_PREFIX + joined(role)


def audit_sk(ts_us: int, name: str) -> str:
    """The place of an audit; `name` is its own."""
    return f"{AUDIT_PREFIX}{fixed(ts_us, TIME_DIGITS)}#{name}"


def audit_of(sk: str) -> tuple[int, str]:
    """The time and name of the audit that lies there."""
    _, ts_us, name = sk.split("#")
    return int(ts_us), name


def audit_listed_at(user: str, ts_us: int, name: str) -> str:
    """The place of an audit in the list of what its person changed."""
    return f"{audits_of(user)}{fixed(ts_us, TIME_DIGITS)}#{name}"


def audits_of(user: str) -> str:
    """What the places in the list of a person's changes begin with."""
    return f"{AUDITS_PREFIX}{joined(user)}#"


def sign_in_pk(token_sha256: str) -> str:
    """Where a session or a one-time code lies."""
    return f"sign-in#{joined(token_sha256)}"


def session_pk(dataset: Dataset, session_id: str) -> str:
    """Where a session lies: its head, which says whose it is, and its rows."""
    return f"session#{joined(dataset.workspace, dataset.name, session_id)}"


def row_sk(seq: int, block_idx: int) -> str:
    """The place of a row in its session."""
    return f"{ROW_PREFIX}{fixed(seq, SEQ_DIGITS)}#{fixed(block_idx, BLOCK_DIGITS)}"


def place_of_row(sk: str) -> tuple[int, int]:
    """The seq and block_idx of the row that lies there."""
    _, seq, block_idx = sk.split("#")
    return int(seq), int(block_idx)


def body_key(dataset: Dataset, session_id: str, seq: int, block_idx: int) -> str:
    """The name of the object that holds what a row's item cannot."""
    session = digest(joined(dataset.workspace, dataset.name, session_id))
    return f"{digest(dataset.workspace)[:16]}/{session}/{seq}/{block_idx}"
