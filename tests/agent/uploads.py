"""What the tests of uploads share: writing a transcript, uploading it, reading the log."""

from pathlib import Path

from ctrlb_agent import state
from ctrlb_agent.uploading import upload
from ctrlb_agent.uploading.transcript import Parser
from ctrlb_agent.uploading.upload import Report
from tests.agent.programs import logged
from tests.agent.transcripts import Lines, line, settings
from tests.laptop import Laptop

PLENTY_S = 60.0


def uploaded(laptop: Laptop, *paths: Path, url: str = "", budget_s: float = PLENTY_S, parser: Parser = Lines) -> Report:
    """Upload what is new in the files."""
    return upload.upload([str(path) for path in paths], "script", settings(laptop, url), budget_s, parser=parser)


def log() -> str:
    """What the log says."""
    return logged(Path(state.home()))


def add(path: Path, *lines: bytes) -> None:
    """Append to the file."""
    with path.open("ab") as stream:
        stream.write(b"".join(lines))


def numbered(count: int, start: int = 0) -> list[bytes]:
    """Lines of one block each."""
    return [line(f"text {number}") for number in range(start, start + count)]


def texts(count: int) -> list[str]:
    """The bodies of `numbered` lines."""
    return [f"text {number}" for number in range(count)]
