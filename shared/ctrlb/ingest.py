"""A workspace's ingest credentials: each lets a service send OpenTelemetry logs to one dataset, and nothing else."""

from typing import Any

from ctrlb.decisions import Decision, decide
from ctrlb.domain.access import Caller
from ctrlb.domain.audits import audit_of
from ctrlb.domain.errors import NotFound
from ctrlb.domain.key_format import INGEST_PREFIX, secret_hash, written_key
from ctrlb.domain.rows import IngestCredential
from ctrlb.models import (
    CreateIngestCredentialAnswer,
    CreateIngestCredentialRequest,
    IngestCredentialInfo,
    ListIngestCredentialsAnswer,
    ListIngestCredentialsRequest,
    RevokeIngestCredentialAnswer,
    RevokeIngestCredentialRequest,
)
from ctrlb.ports import Ports


def create_ingest_credential(
    request: CreateIngestCredentialRequest, caller: Caller, ports: Ports
) -> CreateIngestCredentialAnswer:
    """Make a credential for one dataset. It is the workspace's, so it outlives who made it."""
    secret = ports.random.secret()
    made = IngestCredential(
        workspace=caller.workspace,
        credential_id=ports.random.key_id(),
        dataset=request.dataset,
        name=request.name,
        created_by=caller.user,
        secret_sha256=secret_hash(secret),
        created_us=ports.clock.now_us(),
    )
    shown = _shown(made, revoked=False)
    audit = audit_of("create_ingest_credential", caller, made.created_us, None, shown)

    def once(decision: Decision) -> None:
        ports.identity.add_ingest_credential(made, decision.grounds, audit)

    decide("relay.manage", caller, ports, once)
    return CreateIngestCredentialAnswer(
        credential=written_key(made.workspace, made.credential_id, secret, INGEST_PREFIX),
        credential_id=made.credential_id,
        name=made.name,
        dataset=made.dataset,
    )


def list_ingest_credentials(
    request: ListIngestCredentialsRequest, caller: Caller, ports: Ports
) -> ListIngestCredentialsAnswer:
    """The workspace's credentials, oldest first, revoked ones too."""
    return ListIngestCredentialsAnswer(
        credentials=[
            IngestCredentialInfo(
                credential_id=each.credential_id,
                name=each.name,
                dataset=each.dataset,
                user_name=each.created_by,
                created=each.created_us,
                revoked=each.revoked_us,
            )
            for each in ports.identity.ingest_credentials(caller.workspace)
        ]
    )


def revoke_ingest_credential(
    request: RevokeIngestCredentialRequest, caller: Caller, ports: Ports
) -> RevokeIngestCredentialAnswer:
    """End a credential of the workspace's. Revoking it again keeps the first time."""
    workspace, credential_id = caller.workspace, request.credential_id

    def once(decision: Decision) -> int:
        found = ports.identity.ingest_credential(workspace, credential_id)
        if found is None:
            raise NotFound(f"there is no ingest credential {credential_id}; GET /ai/ingest-credentials lists them")
        if found.revoked_us is not None:
            return found.revoked_us
        now_us = ports.clock.now_us()
        was, now = _shown(found, revoked=False), _shown(found, revoked=True)
        audit = audit_of("revoke_ingest_credential", caller, now_us, was, now)
        ports.identity.revoke_ingest_credential(workspace, credential_id, now_us, decision.grounds, audit)
        kept = ports.identity.ingest_credential(workspace, credential_id)
        return kept.revoked_us if kept and kept.revoked_us else now_us

    revoked_us = decide("relay.manage", caller, ports, once)
    return RevokeIngestCredentialAnswer(credential_id=credential_id, revoked=revoked_us)


def _shown(credential: IngestCredential, *, revoked: bool) -> dict[str, Any]:
    """What is recorded of it."""
    shown = {"credential_id": credential.credential_id, "name": credential.name, "dataset": credential.dataset}
    return {**shown, "revoked": revoked}
