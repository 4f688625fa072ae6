"""One structured line for each request, which carries its metrics too (embedded metric format).

A line says what was asked, by which workspace, how it ended and how long it took. It never holds a
body, a term, a key or a token.
"""

import functools
import logging
import logging.handlers
import os
import time

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from ctrlb.answers import Answered
from ctrlb.models import ErrorAnswer

SERVICE = "ctrlb"
NAMESPACE = "CtrlB"
LOG_FILE_BYTES = 10_000_000
LOG_FILES_KEPT = 3


def log_request(operation: str, door: str, request_id: str, answered: Answered, started_s: float) -> None:
    """Write the line of a request that began at `started_s` (by time.perf_counter)."""
    duration_ms = (time.perf_counter() - started_s) * 1_000
    refused = answered.answer if isinstance(answered.answer, ErrorAnswer) else None
    metrics = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service=SERVICE)
    metrics.add_dimension("operation", operation)
    metrics.add_metric("duration", MetricUnit.Milliseconds, round(duration_ms, 3))
    metrics.add_metric("faults", MetricUnit.Count, int(answered.status >= 500))
    metrics.add_metric("refusals", MetricUnit.Count, int(400 <= answered.status < 500))
    _logger().info(
        f"{operation} {answered.status}",
        extra={
            "request_id": request_id,
            "door": door,
            "workspace": answered.caller.workspace if answered.caller else "",
            "status": answered.status,
            "code": refused.code if refused else None,
            **metrics.serialize_metric_set(),
        },
    )


@functools.cache
def _logger() -> Logger:
    """To standard output, as Lambda wants it, or to the file that laptop mode names, which is rotated."""
    path = os.environ.get("CTRLB_LOG_FILE")
    handler: logging.Handler | None = None
    if path:
        handler = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_FILE_BYTES, backupCount=LOG_FILES_KEPT)
    return Logger(service=SERVICE, logger_handler=handler)
