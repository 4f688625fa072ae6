"""Who changed what in a workspace. Every change records it in its own transaction; here it is read again."""

import re

from ctrlb.domain.access import Caller
from ctrlb.domain.audits import read_shown
from ctrlb.domain.cursors import no_cursor, read_cursor, written_cursor
from ctrlb.domain.rows import Audit
from ctrlb.models import AuditEvent, ListAuditEventsAnswer, ListAuditEventsRequest
from ctrlb.ports import Ports

_NAME = re.compile("[0-9a-f]{1,32}")


def list_audit_events(request: ListAuditEventsRequest, caller: Caller, ports: Ports) -> ListAuditEventsAnswer:
    """The changes in the caller's workspace, newest first; those that one person made, if one is named."""
    before = read_cursor(request.cursor) if request.cursor else None
    if before is not None and not _NAME.fullmatch(before[1]):
        raise no_cursor()
    found = ports.identity.audits(caller.workspace, before, request.limit + 1, request.user_name)
    shown = found[: request.limit]
    cursor = written_cursor((shown[-1].ts_us, shown[-1].name)) if len(found) > len(shown) else None
    return ListAuditEventsAnswer(events=[_event(audit) for audit in shown], next_cursor=cursor)


def _event(audit: Audit) -> AuditEvent:
    return AuditEvent(
        ts=audit.ts_us,
        user_name=audit.user or None,
        action=audit.action,
        before=read_shown(audit.before),
        after=read_shown(audit.after),
    )
