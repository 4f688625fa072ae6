"""The MCP door as its clients see it, on any deployment: CTRLB_TEST_URL and CTRLB_TEST_KEY, or its own."""

from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import Deployment, deployment, http, run_id, session_id
from tests.mcp.door import McpDoor

__all__ = ["deployment", "http", "mcp", "run_id", "session_id"]


@pytest.fixture(scope="session")
def mcp(deployment: Deployment) -> Iterator[McpDoor]:
    """The door of the deployment under test."""
    with McpDoor(deployment.url, deployment.key) as door:
        yield door
