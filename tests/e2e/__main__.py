"""`make e2e`: template.yaml on an emulator of AWS, beside a real OpenSearch node, held to the tests of any deployment.

The emulator asks each function's policies about every call, so one that lacks a permission fails. Where it is unlike
AWS tests are left out, each by name and with its reason, in `differs.py`.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.aws.emulator import ROOT, Emulator
from tests.e2e.stack import THIS_MACHINE, Stack, build, expected_routes, import_alone, run
from tests.opensearch.node import OpenSearchNode

SETTINGS = {"AUTH": "true", "LAMBDA_WARM_TTL_SECONDS": "60"}
COMMAND_TIMEOUT_S = 120
TESTS_TIMEOUT_S = 1_200
CONSOLE = "https://console.example.com"
SUITES = ("tests/acceptance", "tests/mcp")


def main() -> int:
    """Build, deploy, test, tear down. Returns the tests' exit status."""
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="e2e-")))
        say("build")
        template = build(folder)
        say("import each handler from what was built, alone")
        import_alone(template.parent)
        say("start the emulator and the search node")
        emulator = Emulator(folder, **SETTINGS)
        running.callback(emulator.stop)
        running.callback(lambda: print(emulator.faults(), file=sys.stderr))
        (folder / "search").mkdir()
        node = OpenSearchNode(folder / "search")
        running.callback(node.stop)
        running.enter_context(_environment(emulator.environment))
        say("deploy")
        stack = Stack(
            template,
            {
                **THIS_MACHINE,
                "SnapStart": "None",
                "SearchMode": "existing",
                "SearchUrl": node.url,
                "SearchDomainName": "tests",
                "ConsoleOrigin": CONSOLE,
            },
        )
        if stack.routes() != expected_routes():
            raise RuntimeError(f"these routes differ: {sorted(stack.routes() ^ expected_routes())}")
        allowed = [stack.allowed_origin(origin) for origin in (CONSOLE, "https://elsewhere.example.com")]
        if allowed != [CONSOLE, None]:
            raise RuntimeError(f"of the console's origin and another, these may call: {allowed}")
        table = stack.outputs["RelayTable"]
        workspace = ["workspace", "create", "--table", table, "--name", "acme", "--admin", "ada"]
        key = run([sys.executable, "-m", "ctrlb", *workspace], COMMAND_TIMEOUT_S).strip()
        say("run the tests")
        return tested(stack.url, key)


def tested(url: str, key: str) -> int:
    """Run the suites on the deployment. Returns their exit status."""
    options = ["-q", "-m", "not slow", "-p", "tests.e2e.differs", *sys.argv[1:]]
    command = [sys.executable, "-m", "pytest", *options, *SUITES]
    environment = {**os.environ, "CTRLB_TEST_URL": url, "CTRLB_TEST_KEY": key}
    return subprocess.run(command, cwd=ROOT, env=environment, timeout=TESTS_TIMEOUT_S, check=False).returncode


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """AWS is where the variables say, for this process and those that it starts."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def say(step: str) -> None:
    """Tell the person who waits how far it has come."""
    print(f"e2e: {time.perf_counter() - STARTED_S:5.1f} s: {step}", flush=True)


STARTED_S = time.perf_counter()

if __name__ == "__main__":
    sys.exit(main())
