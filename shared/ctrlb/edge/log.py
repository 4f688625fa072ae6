"""One structured line for each request or batch, which carries its metrics too (embedded metric format).

A line says what was asked, by which workspace, how it ended and how long it took; or of a stream's batch what became
of it. It never holds a body, a term, a key or a token.
"""

import functools
import os
import time
from collections.abc import Mapping, Sequence

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from ctrlb.answers import Answered
from ctrlb.models import ErrorAnswer

SERVICE = "ctrlb"
NAMESPACE = "CtrlB"


def log_request(operation: str, door: str, request_id: str, answered: Answered, started_s: float) -> None:
    """Write the line of a request that began at `started_s` (by time.perf_counter)."""
    duration_ms = (time.perf_counter() - started_s) * 1_000
    refused = answered.answer if isinstance(answered.answer, ErrorAnswer) else None
    metrics = _metrics().serialize_metric_set(
        metrics={
            "duration": {"Unit": MetricUnit.Milliseconds.value, "Value": [round(duration_ms, 3)]},
            "faults": {"Unit": MetricUnit.Count.value, "Value": [int(answered.status >= 500)]},
            "refusals": {"Unit": MetricUnit.Count.value, "Value": [int(400 <= answered.status < 500)]},
        },
        dimensions={"operation": operation, "service": SERVICE},
    )
    _logger().info(
        f"{operation} {answered.status}",
        extra={
            "request_id": request_id,
            "door": door,
            "workspace": answered.caller.workspace if answered.caller else "",
            "status": answered.status,
            "code": refused.code if refused else None,
            **metrics,
        },
    )


def log_batch(
    function: str, request_id: str, counts: Mapping[str, int], *, age_us: int, reasons: Sequence[str], started_s: float
) -> None:
    """Write the line of a stream's batch, whose oldest change was made `age_us` before; begun as in `log_request`."""
    duration_ms = (time.perf_counter() - started_s) * 1_000
    milliseconds, count = MetricUnit.Milliseconds.value, MetricUnit.Count.value
    metrics = _metrics().serialize_metric_set(
        metrics={
            "duration": {"Unit": milliseconds, "Value": [round(duration_ms, 3)]},
            "iterator_age": {"Unit": milliseconds, "Value": [age_us // 1_000]},
            **{name: {"Unit": count, "Value": [number]} for name, number in counts.items()},
        },
        dimensions={"operation": function, "service": SERVICE},
    )
    _logger().info(
        f"{function} batch",
        extra={"request_id": request_id, "door": "stream", "reasons": list(reasons), **metrics},
    )


@functools.cache
def _metrics() -> AmazonCloudWatchEMFProvider:
    """Only to give metrics their form: it is shared by all requests, so it keeps none of theirs."""
    return AmazonCloudWatchEMFProvider(namespace=NAMESPACE, dimension_set={"service": SERVICE})


@functools.cache
def _logger() -> Logger:
    """To standard output, as Lambda wants it, or to the file that laptop mode names."""
    path = os.environ.get("CTRLB_LOG_FILE")
    if not path:
        return Logger(service=SERVICE)
    from ctrlb.edge.log_file import LogFile

    return Logger(service=SERVICE, logger_handler=LogFile(path))
