"""Which names stand for a secret (`DB_PASSWORD`, `apiKey`, `--auth-token`), and which of their values give one away.

The same name is met in a settings file, where what follows is a secret, and in source code, where it is a type, a call
or another name. So a value is judged by its name's kind and by how it was written.
"""

from __future__ import annotations

import re

from ctrlb_agent.redacting.secret_formats import REDACTED

PASSWORD = "password"
"""A person may have chosen it: it can be a word, a number, a sentence."""
TOKEN = "token"
"""A machine made it: a single word or a small number is something else."""
KEY = "key"
"""`SOMETHING_KEY`, which is a secret only when its value looks random."""
AUTH = "auth"
"""`SOMETHING_AUTH`, which may as well say how one signs in: `oidc`, `workload-identity`."""

QUOTED = "quoted"
"""`password = "…"`, a string of JSON."""
BOUND = "bound"
"""What can hold nothing but a literal: `PASSWORD=…`, `--token …`, `?token=…`, `;Pwd=…`, `<password>…</password>`."""
LINE = "line"
"""`password: x` or `password = x`, alone on its line: a settings file, or code."""
LOOSE = "loose"
"""Without quotes, in the midst of a line."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_JUDGED_CHARS = 256

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD_ENDS = ("password", "passwd", "passphrase", "passcode", "pwd", "passwords")
_TOKEN_ENDS = (
    "secret",
    "secrets",
    "token",
    "apikey",
    "apikeys",
    "accesskey",
    "privatekey",
    "credential",
    "credentials",
)
_BEFORE_KEY = _words(
    """
    api access private secret account auth encryption signing sign master shared client license storage
    subscription deploy session authorization preshared hmac webhook ingest
    """
)
_KEY_OF_DATA = _words(
    """
    cache sort primary partition public publishable idempotency foreign object s row group lookup index map hash
    range unique composite natural dedupe host translation i18n gpg
    """
)
_NOT_AFTER = _words(
    """
    range fd stdin command cmd callback count counts counter limit limits ttl type types url uri urls endpoint
    endpoints id ids name names length len size file files filename path paths dir folder prefix suffix expiry
    expires expire expiration expired lifetime age header headers field fields usage use used uses budget index
    idx max min per rate cost price format version policy policies reset strength hint label placeholder prompt
    validity revocation required enabled disabled provider manager store storage service class factory handler
    parser generator validator validation validate kind env var variable arn ref refs regex pattern rule rules
    column input form page view model schema issuer audience scope scopes created updated changed algorithm alg
    at by in total estimate window position offset list set map dict table rotation docs help description title
    error status state method mode mask only chars characters bytes hash sha sha256 sha512 digest checksum
    fingerprint hashes requirements requirement complexity less free source location bucket num number exists
    visible visibility toggle button icon link exchange authentication auth based spec backend middleware text
    timeout sec secs second seconds minutes hours days address addresses encryption
    """
)
_NOT_BEFORE = _words(
    """
    max min num total input output prompt completion cached reasoning thinking next page continuation pagination
    eos bos pad unk sep cls mask special forgot reset change no without missing invalid public
    existing render llvm shader compiler optimization
    """
)


def kind_of(name: str) -> str | None:
    """The kind of a name that has such a word in it and is not about something else (`token_count`)."""
    if "::" in name:
        return None
    words = [word.lower() for word in _WORDS.findall(name[name.rfind(".", 0, -1) + 1 :])]
    for at in range(len(words) - 1, -1, -1):
        kind = _kind_of_word(words, at, name.isupper())
        if kind:
            if _NOT_AFTER.intersection(words[at + 1 :]) or (at and words[at - 1] in _NOT_BEFORE):
                return None
            return kind
    return None


def _kind_of_word(words: list[str], at: int, is_upper: bool) -> str | None:
    word = words[at]
    if word.endswith(_PASSWORD_ENDS) or (word == "pass" and at > 0) or word == "sshpass":
        return PASSWORD
    if word.endswith(_TOKEN_ENDS) or words in (["pass"], ["pw"]):
        return TOKEN
    if words[at:] == ["auth"] and is_upper and at > 0:
        return AUTH
    if word in ("key", "keys") and at > 0:
        if words[at - 1] in _BEFORE_KEY:
            return TOKEN
        return KEY if is_upper and at == len(words) - 1 and words[at - 1] not in _KEY_OF_DATA else None
    if word == "pat" and is_upper and at > 0:
        return KEY
    return None


_REFERENCE = re.compile(
    r".{0,200}(?:%[ds]\b|\\[wdsS][+*])|\$(?:[A-Za-z_]\w*$|[0-9@*]$|\(|\{)|.{0,200}\$\{|.{0,200}\{\{|%(?:[a-z]$|\(\w+\)|\w+%)|"
    r"<[^<>]*>$|\{[\w.\[\]()'\" ]*\}$|"
    r"@\w+@$|(?:process\.env|import\.meta|os\.environ|os\.getenv|env[.\[(]|ENV\[|"
    r"secrets?\.|vars?\.|local\.|data\.|module\.|self\.|"
    r"this\.|settings\.|config\.|cfg\.|args\.|opts?\.|options\.|request\.|req\.|props\.|params?\.)[A-Za-z_\[(]|"
    r"(?:op|vault|ssm|secretsmanager|file|https?|wss?|arn|ref|gcp|aws|keyring|unix):|"
    r"//|\.{1,2}/|~/|/[a-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*/?$|/(?:Users|Volumes|Applications|Library)/|[A-Z]:[\\/]|"
    r"[\w./-]{1,200}\.(?:json|pem|key|p12|pfx|jks|txt|ya?ml|crt|cer|pub|o)$|id_(?:rsa|dsa|ecdsa|ed25519)$"
)
"""What stands for a secret that is kept elsewhere: a variable, a template, a path, a file's name."""
_TEMPLATE = re.compile(r".{0,200}(?:\{[A-Za-z_][\w.\[\]()'\" ]{1,80}\}|\{[0-9]?\}|\[[^\]]{2,80}\](?:[+*?]|\{[0-9]))")
UNQUOTED_REFERENCE = re.compile(
    r"[$@<({\[%]|[A-Z]:(?:\\|/\w)|!(?:Ref|GetAtt|Sub|ImportValue|vault|reference)\b|[*&]\w+$|\.\*"
)
_EXAMPLE = re.compile(
    r"(?i)x{3,}|#[0-9a-f]{3,8}$|\([^()]*\)$|[*•·.\-_#?…]+$|.{0,40}(?:\.\.\.|…|\\u202[26])|changeme|"
    r"(?:your|my|the|an?|some|insert|enter|put|replace|add)[-_ ]|"
    r"change[-_](?:me|this)|(?:required|nullable|sometimes)\||\w+:(?:read|write|admin|list|create|update|delete|manage)$|"
    r"(?:\\{1,15}[abfnrtv0])+$|\[[A-Za-z]{2,8}\]$|0x[0-9a-f]{40}$|(?:nil|undefined|true|false|yes|on|off|todo|tbd|placeholder|redacted|empty|hidden|masked|n/a)$"
)
_NUMBER = re.compile(r"[+-]?[0-9][0-9_,.]*(?:[eE][+-]?[0-9]+|[kKmMsh%]|ms)?$")
_VERSION = re.compile(r"[\^~<>=v* ]*[0-9]+(?:\.(?:[0-9]+|[x*]))+")
_CODE = re.compile(
    r"!?(?:await |new |not |lambda)?[A-Za-z_][\w.:]*[(\[<{]|[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+$"
)
_TOKEN_OF_DESIGN = re.compile(r"\$?[a-z]{3,12}-[0-9]{1,3}$|[a-z]+(?:\.[a-z]+)+$")
"""`primary-500` of a design, `comment.line` of an editor's grammar."""
_ESCAPED = re.compile(r"\\{1,15}u([0-9a-fA-F]{4})")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*$")
_SECRET_WORD = re.compile(r"(?i)passw|passphrase|pwd|secret|token|key|credential")
_ALGORITHM = re.compile(
    r"(?i)(?:sha|md|hs|rs|es|ps|ed|base|utf|oauth|u?int|float|aes|u|i|f|pbkdf|argon|ipv|http|x)"
    r"-?[0-9]{1,5}(?:[-_]\w+)?$"
)
_APP_PASSWORD = re.compile(r"(?:[a-z]{4} ){3}[a-z]{4}$")
"""As Google makes them for programs."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SPOKEN = _words(
    """
    str string strings bytes int integer bool boolean any object text varchar number unknown char uuid optional
    required none null self option flag argument arguments value values parameter is are was were or and to for
    in of on at by if when then as from with without not no the a an it its this that these you your can may
    must should will would has have be been being use used uses using set sets given here there below above only
    instead header headers field fields type types name names file files path input output read reads write
    prompt prompts missing invalid wrong incorrect expired expires reset changed change changes rotated rotation
    valid authentication auth authorization bearer basic access refresh session cookie cookies user users login
    username email default defaults example test tests testing word words character characters hours minutes
    seconds days inherit plaintext encrypted hashed stdin stdout env unset password passwd passphrase passcode
    pwd secret secrets token tokens key keys apikey credential credentials does did which what who how also both
    never always already same other new old options requires require rather via allows allow needs need lets gets
    takes makes means works fails expects accepts provides specifies because but while so since after before now
    cannot like together along between directly explicitly manually flags switch params
    ok fail failed done passed skipped
    same-origin include omit bcrypt scrypt argon2 argon2id md5 pbkdf2 scram-sha-256
    """
)


def is_secret(kind: str, value: str, written: str) -> bool:
    """Whether the value of a name of that kind, written in that way, is to be replaced. Its beginning decides."""
    value = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value[:MAX_JUDGED_CHARS])
    if not value or REDACTED in value or _EXAMPLE.match(value) or not _has_alnum(value):
        return False
    if _REFERENCE.match(value) or (_TEMPLATE if written == QUOTED else UNQUOTED_REFERENCE).match(value):
        return False
    if value.lower() in _SPOKEN or _VERSION.match(value) or (len(value) > 7 and len(set(value[-8:])) < 3):
        return False
    if kind == KEY:
        return written in (BOUND, QUOTED) and looks_random(value)
    if kind == AUTH:
        return written in (BOUND, QUOTED) and (looks_random(value) or ":" in value or _is_mixed(value))
    if _NUMBER.match(value):
        return kind == PASSWORD and (written != LOOSE or len(value) > 5)
    if _APP_PASSWORD.match(value):
        return True
    if " " in value or "\n" in value:
        return written == QUOTED and kind == PASSWORD and not _is_sentence(value)
    if written == QUOTED:
        return _quoted_is_secret(kind, value)
    if written == BOUND:
        return not (_CODE.match(value) and "(" in value)
    return _unquoted_is_secret(kind, value, written)


def looks_random(value: str) -> bool:
    """Whether a machine made it: at least 20 characters, letters and digits mixed, no words divided by signs."""
    return (
        len(value) >= 20
        and any(char.isdigit() for char in value)
        and len(re.findall(r"[A-Za-z]{4,}[-_./ ]", value)) < 2
        and len(set(value)) > 8
    )


def _is_mixed(value: str) -> bool:
    return value.isalnum() and len(value) > 7 and _digits(value) and not value.isdigit()


def _quoted_is_secret(kind: str, value: str) -> bool:
    if value.isalpha() and (value.istitle() or not value.isascii()):
        return False  # the label of a field, in whatever language
    if kind == TOKEN and _TOKEN_OF_DESIGN.match(value) and ("." in value or not _SECRET_WORD.search(value)):
        return False
    if value.isalpha() and kind == TOKEN:
        return len(value) > 7 and not _SECRET_WORD.search(value)
    if _IDENTIFIER.match(value) and _SECRET_WORD.search(value) and not _digits(value):
        return kind == PASSWORD and value.isalpha() and value.islower()
    return not (kind == TOKEN and value.replace("_", "").isalpha())


def _unquoted_is_secret(kind: str, value: str, written: str) -> bool:
    if _CODE.match(value) or _ALGORITHM.match(value) or _DATE.match(value):
        return False
    if _IDENTIFIER.match(value) and _SECRET_WORD.search(value) and not (written == LINE and _digits(value)):
        return False
    if value.isalpha():
        return written == LINE and kind == PASSWORD and value.islower()
    if not any(char.isalpha() for char in value):
        return kind == PASSWORD
    if _digits(value):
        return written == LINE or len(value) > 5
    return kind == PASSWORD and bool(re.search(r"[!@#$%^&*+=~]", value))


def _is_sentence(value: str) -> bool:
    """Whether it is told to people, as a hint in a form is: begins as a sentence, ends as one, or speaks of secrets."""
    if value.split(" ", 1)[0].lower() in _SPOKEN:
        return True
    return value[0].isupper() or value[-1] in ".:?!…" or bool(_SECRET_WORD.search(value)) or value.count(" ") > 9


def _digits(value: str) -> bool:
    return any(char.isdigit() for char in value)


def _has_alnum(value: str) -> bool:
    return any(char.isalnum() for char in value)
