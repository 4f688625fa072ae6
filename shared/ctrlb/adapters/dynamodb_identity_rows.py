"""Where the small rows of the relay table are, and what their items mean."""

import dataclasses
import json
from typing import cast

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.dynamodb_items import Item, item, number, number_or_none, text, texts
from ctrlb.adapters.identity_text import read_grants
from ctrlb.domain.rows import Audit, IngestCredential, Key, Member, Permission, Role, Settings, SignIn


def settings(found: Item | None) -> Settings:
    return Settings(**json.loads(text(found, "settings"))) if found else Settings()


def member_place(workspace: str, user: str) -> Item:
    return item(pk=places.workspace_pk(workspace), sk=places.member_sk(user))


def member(workspace: str, found: Item) -> Member:
    grants, changed_us = read_grants(text(found, "grants")), number(found, "changed_us")
    return Member(workspace, text(found, "user"), text(found, "role"), found["active"]["BOOL"], grants, changed_us)


def role_place(workspace: str, name: str) -> Item:
    return item(pk=places.workspace_pk(workspace), sk=places.role_sk(name))


def role(workspace: str, found: Item) -> Role:
    permissions = cast("frozenset[Permission]", texts(found, "permissions"))  # they were checked when it was defined
    return Role(workspace, text(found, "name"), permissions, number(found, "changed_us"))


def given_place(workspace: str, role: str) -> Item:
    return item(pk=places.workspace_pk(workspace), sk=places.given_sk(role))


def key_place(workspace: str, key_id: str) -> Item:
    return item(pk=places.workspace_pk(workspace), sk=places.key_sk(key_id))


def key_item(key: Key) -> Item:
    values = dataclasses.asdict(key)
    del values["workspace"]  # its partition's
    listed = item(at=places.key_listed_at(key.user, key.created_us, key.key_id))
    return key_place(key.workspace, key.key_id) | listed | item(**values)


def key(workspace: str, found: Item) -> Key:
    return Key(
        workspace=workspace,
        key_id=text(found, "key_id"),
        user=text(found, "user"),
        name=text(found, "name"),
        secret_sha256=text(found, "secret_sha256"),
        created_us=number(found, "created_us"),
        expires_us=number_or_none(found, "expires_us"),
        revoked_us=number_or_none(found, "revoked_us"),
        last_used_us=number_or_none(found, "last_used_us"),
    )


def ingest_place(workspace: str, credential_id: str) -> Item:
    return item(pk=places.workspace_pk(workspace), sk=places.ingest_sk(credential_id))


def ingest_credential(workspace: str, found: Item) -> IngestCredential:
    return IngestCredential(
        workspace=workspace,
        credential_id=text(found, "credential_id"),
        dataset=text(found, "dataset"),
        name=text(found, "name"),
        created_by=text(found, "created_by"),
        secret_sha256=text(found, "secret_sha256"),
        created_us=number(found, "created_us"),
        revoked_us=number_or_none(found, "revoked_us"),
    )


def audit_item(audit: Audit, name: str) -> Item:
    return item(
        pk=places.workspace_pk(audit.workspace),
        sk=places.audit_sk(audit.ts_us, name),
        at=places.audit_listed_at(audit.user, audit.ts_us, name),
        user=audit.user,
        action=audit.action,
        before=audit.before,
        after=audit.after,
    )


def audit(workspace: str, found: Item) -> Audit:
    user, action = text(found, "user"), text(found, "action")
    ts_us, name = places.audit_of(text(found, "sk"))
    return Audit(workspace, ts_us, user, action, text(found, "before"), text(found, "after"), name)


def sign_in_place(token_sha256: str, *, once: bool) -> dict[str, str]:
    return {"pk": places.sign_in_pk(token_sha256), "sk": places.SIGN_IN_CODE if once else places.SIGN_IN}


def sign_in(token_sha256: str, found: Item | None) -> SignIn | None:
    if found is None:
        return None
    return SignIn(token_sha256, text(found, "workspace"), text(found, "user"), number(found, "expires_us"))
