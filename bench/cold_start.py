"""Cold starts: what importing each handler costs, from what is deployed, beside the least that a handler must import.

Handlers and layer are put together as `make build` does it, without SAM, for this Python, and imported in a clean
interpreter of Linux that sees nothing else. The floor is a botocore client of DynamoDB and three pydantic models, and
for the MCP server the official SDK and Mangum too.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from bench.report import facts, say
from bench.servers import PROJECT
from infra.finish_build import CONSOLE, LAYER, WEB, finish

BEGIN = "<!-- cold starts: written by `make bench` -->"
END = "<!-- end of cold starts -->"
MOST = 1.25
ROUNDS = 9
FLOOR_EVERY = 5
"""So many handlers, so that the floor is measured all through a round."""
QUICK_ROUNDS = 3
INSTALL_TIMEOUT_S = 300
IMPORT_TIMEOUT_S = 60
MEBIBYTE = 1024 * 1024
VARIABLES = {
    **dict.fromkeys(("RELAY_TABLE", "SESSIONS_TABLE", "BODIES_BUCKET"), "name"),
    **dict.fromkeys(("DEAD_LETTER_QUEUE", "SEARCH_URL"), "https://name.invalid"),
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_LAMBDA_FUNCTION_NAME": "name",
}
"""What a handler finds in Lambda. Nothing is called when it is imported."""

FLOOR = """
from botocore.config import Config
from botocore.session import get_session
from pydantic import BaseModel, ConfigDict, Field

class Asked(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    resource: str = Field(min_length=1, max_length=4096)
    agent: str = Field(min_length=1, max_length=200)
    lease_seconds: int | None = Field(default=None, alias="leaseSeconds", ge=1, le=3600)

class Answer(BaseModel):
    held: bool
    resource: str
    lease_until: int | None = None

class Refusal(BaseModel):
    error: str
    code: str | None = None

client = get_session().create_client("dynamodb", config=Config(connect_timeout=1, read_timeout=1))
"""
MCP_FLOOR = (
    FLOOR
    + """
import mcp_types
from mangum import Mangum
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
"""
)
MCP = "serve_mcp"
_HEAD = """\
| handler | import, ms of processor time | floor | ratio | met | peak memory, MB | floor |
|---|---:|---:|---:|---|---:|---:|
"""
_MEASURED = r"""
import json, re, sys, time
sys.path[:0] = sys.argv[1:3]
code = compile(sys.argv[3], "handler", "exec")
began_s = time.process_time()
exec(code, {})
spent_s = time.process_time() - began_s
with open("/proc/self/status") as status:
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read())
print(json.dumps([spent_s, int(peak[1])]))
"""


@dataclass(frozen=True, slots=True)
class Start:
    """One import in a process of its own."""

    cpu_s: float
    peak_kib: int


def measure(folder: Path, quick: bool) -> str:
    """Measure every handler; the table in Markdown."""
    say("putting the artifacts together")
    artifacts = put_together(folder / "cold")
    modules = sorted(path.stem for path in (artifacts / "functions").glob("*.py"))
    starts: dict[str, list[Start]] = {module: [] for module in modules}
    floors: dict[str, list[Start]] = {FLOOR: [], MCP_FLOOR: []}
    for turn in range(QUICK_ROUNDS if quick else ROUNDS):
        say(f"cold starts, round {turn + 1}")
        floors[MCP_FLOOR].append(started(artifacts, MCP_FLOOR))
        for place, module in enumerate(modules):
            if place % FLOOR_EVERY == 0:
                floors[FLOOR].append(started(artifacts, FLOOR))
            starts[module].append(started(artifacts, f"import {module}"))
    rows = [_row(module, starts[module], floors[MCP_FLOOR if module == MCP else FLOOR]) for module in modules]
    return f"{facts()}\n\n{_HEAD}{''.join(rows)}\n{_sizes(artifacts)}\n"


def put_together(folder: Path) -> Path:
    """The handlers and the layer as they are deployed."""
    packages = folder / LAYER / "python"
    shutil.copytree(PROJECT / "functions", folder / "functions", ignore=shutil.ignore_patterns("__pycache__"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    locked = [
        "--require-hashes",
        "--no-deps",
        "--target",
        str(packages),
        "-r",
        str(PROJECT / "shared/requirements.txt"),
    ]
    subprocess.run([*install, *locked], check=True, timeout=INSTALL_TIMEOUT_S)
    shutil.copytree(PROJECT / "shared/ctrlb", packages / "ctrlb", ignore=shutil.ignore_patterns("__pycache__"))
    finish(folder)
    (folder / CONSOLE / WEB.name).rename(folder / "functions" / WEB.name)  # all handlers lie in one folder here
    return folder


def started(artifacts: Path, code: str) -> Start:
    """Run the code in an interpreter that sees the artifacts and nothing else."""
    paths = [str(artifacts / "functions"), str(artifacts / LAYER / "python")]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _MEASURED, *paths, code],
        env={"PATH": os.environ["PATH"], **VARIABLES},
        capture_output=True,
        check=True,
        timeout=IMPORT_TIMEOUT_S,
    )
    return Start(*json.loads(done.stdout))


def _row(module: str, ours: list[Start], floor: list[Start]) -> str:
    ratio = _cpu_ms(ours) / _cpu_ms(floor)
    met = "yes" if ratio <= MOST else "**no**"
    return (
        f"| `{module}` | {_cpu_ms(ours):.0f} | {_cpu_ms(floor):.0f} | {ratio:.2f} | {met} "
        f"| {_peak_mb(ours):.0f} | {_peak_mb(floor):.0f} |\n"
    )


def _sizes(artifacts: Path) -> str:
    layer = _zipped(artifacts / LAYER, artifacts / "layer.zip")
    handlers = _zipped(artifacts / "functions", artifacts / "functions.zip")
    return (
        f"The layer is {layer / MEBIBYTE:.1f} MiB zipped, a function's own code {handlers / 1024:.0f} KiB. "
        f"The aim is at most {MOST} of the floor."
    )


def _zipped(folder: Path, target: Path) -> int:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return target.stat().st_size


def _cpu_ms(starts: list[Start]) -> float:
    return statistics.median(start.cpu_s for start in starts) * 1_000


def _peak_mb(starts: list[Start]) -> float:
    return statistics.median(start.peak_kib for start in starts) / 1024
