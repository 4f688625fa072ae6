"""The table of all operations.

Everything that speaks of "all operations" reads it: the HTTP and MCP doors, the OpenAPI document, the
test that holds template.yaml to it, and the one that proves each permission.
"""

from collections.abc import Callable
from functools import partial

from ctrlb import audit, claims, ingest, keys, members, models, notes, runs, service, sessions, settings, sign_in
from ctrlb.operation import Operation

__all__ = ["MCP_PATH", "OPERATIONS", "Operation", "operation_of"]


_SESSIONS = "/ai/sessions/{dataset}"
_RUNS = "/ai/relay/{dataset}/runs"
_RUN = _RUNS + "/{run_id}"

_managing = partial(Operation, permission="members.manage", persons_only=True)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        sessions.upload_records,
        models.UploadRecordsRequest,
        models.UploadRecordsAnswer,
        "POST",
        f"{_SESSIONS}/records",
        "sessions.write",
        status=202,
        writes=True,
        body_field="records",
    ),
    Operation(
        sessions.search_sessions,
        models.SearchSessionsRequest,
        models.SearchSessionsAnswer,
        "GET",
        f"{_SESSIONS}/search",
        "mcp.use",
        tool=True,
    ),
    Operation(
        sessions.find_command,
        models.FindCommandRequest,
        models.FindCommandAnswer,
        "GET",
        f"{_SESSIONS}/commands",
        "mcp.use",
        tool=True,
    ),
    Operation(
        sessions.next_actions,
        models.NextActionsRequest,
        models.NextActionsAnswer,
        "GET",
        f"{_SESSIONS}/{{session_id}}/next",
        "mcp.use",
        tool=True,
    ),
    Operation(
        sessions.fetch_records,
        models.FetchRecordsRequest,
        models.FetchRecordsAnswer,
        "GET",
        f"{_SESSIONS}/{{session_id}}/records",
        "mcp.use",
        tool=True,
    ),
    Operation(
        notes.peers,
        models.PeersRequest,
        models.PeersAnswer,
        "GET",
        f"{_RUN}/peers",
        "mcp.use",
        tool=True,
        needs=("run_id",),
    ),
    Operation(
        notes.post,
        models.PostRequest,
        models.PostAnswer,
        "POST",
        f"{_RUN}/posts",
        "relay.write",
        status=201,
        writes=True,
        tool=True,
        needs=("run_id", "agent"),
        http_fields=frozenset({"ok"}),
    ),
    Operation(
        claims.claim,
        models.ClaimRequest,
        models.ClaimAnswer,
        "POST",
        f"{_RUN}/claims",
        "relay.write",
        writes=True,
        tool=True,
        needs=("run_id", "agent"),
    ),
    Operation(
        claims.release,
        models.ReleaseRequest,
        models.ReleaseAnswer,
        "DELETE",
        f"{_RUN}/claims",
        "relay.write",
        writes=True,
        tool=True,
        needs=("run_id", "agent"),
    ),
    Operation(
        claims.check,
        models.CheckRequest,
        models.CheckAnswer,
        "POST",
        f"{_RUN}/check",
        "relay.write",
        writes=True,
        needs=("run_id", "agent"),
    ),
    Operation(runs.list_runs, models.ListRunsRequest, models.ListRunsAnswer, "GET", _RUNS, "mcp.use"),
    Operation(runs.get_run, models.GetRunRequest, models.GetRunAnswer, "GET", _RUN, "mcp.use", needs=("run_id",)),
    Operation(
        settings.get_settings,
        models.GetSettingsRequest,
        models.SettingsAnswer,
        "GET",
        "/ai/relay/settings",
        "mcp.use",
    ),
    Operation(
        settings.change_settings,
        models.ChangeSettingsRequest,
        models.SettingsAnswer,
        "PUT",
        "/ai/relay/settings",
        "relay.manage",
        writes=True,
        persons_only=True,
    ),
    Operation(
        keys.create_key,
        models.CreateKeyRequest,
        models.CreateKeyAnswer,
        "POST",
        "/ai/keys",
        "mcp.use",
        status=201,
        writes=True,
        persons_only=True,
    ),
    Operation(
        keys.list_keys, models.ListKeysRequest, models.ListKeysAnswer, "GET", "/ai/keys", "mcp.use", persons_only=True
    ),
    Operation(
        keys.revoke_key,
        models.RevokeKeyRequest,
        models.RevokeKeyAnswer,
        "DELETE",
        "/ai/keys/{key_id}",
        "mcp.use",
        writes=True,
        persons_only=True,
    ),
    _managing(members.list_members, models.ListMembersRequest, models.ListMembersAnswer, "GET", "/ai/members"),
    _managing(
        members.invite_member,
        models.InviteMemberRequest,
        models.MemberInfo,
        "POST",
        "/ai/members",
        status=201,
        writes=True,
    ),
    _managing(
        members.change_member,
        models.ChangeMemberRequest,
        models.MemberInfo,
        "PUT",
        "/ai/members/{user_name}",
        writes=True,
    ),
    _managing(members.list_roles, models.ListRolesRequest, models.ListRolesAnswer, "GET", "/ai/roles"),
    _managing(members.change_role, models.ChangeRoleRequest, models.RoleInfo, "PUT", "/ai/roles/{role}", writes=True),
    _managing(
        members.remove_role,
        models.RemoveRoleRequest,
        models.RemoveRoleAnswer,
        "DELETE",
        "/ai/roles/{role}",
        writes=True,
    ),
    _managing(audit.list_audit_events, models.ListAuditEventsRequest, models.ListAuditEventsAnswer, "GET", "/ai/audit"),
    Operation(
        ingest.create_ingest_credential,
        models.CreateIngestCredentialRequest,
        models.CreateIngestCredentialAnswer,
        "POST",
        "/ai/ingest-credentials",
        "relay.manage",
        status=201,
        writes=True,
        persons_only=True,
    ),
    Operation(
        ingest.list_ingest_credentials,
        models.ListIngestCredentialsRequest,
        models.ListIngestCredentialsAnswer,
        "GET",
        "/ai/ingest-credentials",
        "relay.manage",
        persons_only=True,
    ),
    Operation(
        ingest.revoke_ingest_credential,
        models.RevokeIngestCredentialRequest,
        models.RevokeIngestCredentialAnswer,
        "DELETE",
        "/ai/ingest-credentials/{credential_id}",
        "relay.manage",
        writes=True,
        persons_only=True,
    ),
    Operation(sign_in.get_sign_in, models.GetSignInRequest, models.GetSignInAnswer, "GET", "/ai/sign-in", None),
    Operation(
        sign_in.sign_in,
        models.SignInRequest,
        models.SignInAnswer,
        "POST",
        "/ai/sign-in",
        None,
        writes=True,
        laptop_only=True,
    ),
    Operation(
        sign_in.sign_out,
        models.SignOutRequest,
        models.SignOutAnswer,
        "POST",
        "/ai/sign-out",
        None,
        writes=True,
        persons_only=True,
        laptop_only=True,
    ),
    Operation(service.health, models.HealthRequest, models.HealthAnswer, "GET", "/health", None),
    Operation(service.openapi, models.OpenApiRequest, models.OpenApiAnswer, "GET", "/openapi.json", None),
)

MCP_PATH = "/mcp"
"""The one path that is no operation: the MCP server, whose tools are."""


def operation_of(run: Callable[..., models.Answer]) -> Operation:
    """The table's row for an operation's function."""
    return next(operation for operation in OPERATIONS if operation.run is run)
