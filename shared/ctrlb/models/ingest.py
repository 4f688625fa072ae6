"""The wire of ingest credentials."""

from ctrlb.models.fields import Answer, DatasetName, Id, Label, Request


class CreateIngestCredentialRequest(Request):
    """Make a credential that sends OpenTelemetry logs to one dataset."""

    name: Label
    dataset: DatasetName


class CreateIngestCredentialAnswer(Answer):
    """The credential. It is shown this once."""

    credential: str
    credential_id: str
    name: str
    dataset: str


class IngestCredentialInfo(Answer):
    """An ingest credential, without its secret."""

    credential_id: str
    name: str
    dataset: str
    user_name: str
    created: int
    revoked: int | None


class ListIngestCredentialsRequest(Request):
    """List the workspace's ingest credentials."""


class ListIngestCredentialsAnswer(Answer):
    """The workspace's ingest credentials, oldest first."""

    credentials: list[IngestCredentialInfo]


class RevokeIngestCredentialRequest(Request):
    """End an ingest credential."""

    credential_id: Id


class RevokeIngestCredentialAnswer(Answer):
    """The credential is refused from now on."""

    credential_id: str
    revoked: int
