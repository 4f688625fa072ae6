"""The forms by which a secret gives itself away: what its maker put in front of it, as `ghp_` of GitHub.

Every pattern here takes time in proportion to the text: none has a repeat inside a repeat, and none that is unbounded.
"""

from __future__ import annotations

import re

REDACTED = "[REDACTED]"
MIN_CHARACTERS = 4
"""A secret's end has at least as many different characters."""

_HEX = "[0-9a-f]"
_ALNUM = "[A-Za-z0-9]"
_NO_MORE = r"(?![A-Za-z0-9])"

_DIVIDED = (
    # Where code and packages are kept, and what builds them.
    ("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"\w{30,300}"),
    (
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- glimt- glagent- gloas- glffct-",
        r"[\w-]{16,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?",
    ),
    ("npm_ nfp_", rf"{_ALNUM}{{30,100}}"),
    ("pypi-", r"AgE[\w-]{16,300}"),
    ("rubygems_", rf"{_HEX}{{32,64}}"),
    ("sqp_ squ_ sqa_", rf"{_HEX}{{40}}{_NO_MORE}"),
    ("CLOJARS_", rf"{_HEX}{{60}}"),
    ("pat-na1- pat-eu1-", r"[0-9a-f-]{36}"),
    ("pul- sbp_ sgp_ e2b_ bkua_", r"[0-9a-f_]{32,100}"),
    ("CCIPAT_", r"\w{32,120}"),
    ("sntrys_ sntryu_", r"[\w+/=]{40,300}"),
    ("PMAK- CFPAT-", r"[\w-]{32,120}"),
    # Clouds.
    ("GOCSPX-", r"[\w-]{20,60}"),
    ("ya29.", r"[\w-]{20,300}"),
    ("dop_v1_ doo_v1_ dor_v1_", rf"{_HEX}{{32,64}}"),
    ("HRKU-", r"[\w-]{36,80}"),
    ("hvs. hvb. hvr.", r"[\w-]{20,300}"),
    ("fm2_", r"[\w+/=]{40,2000}"),
    ("rnd_ fo1_", rf"(?=[A-Za-z]{{0,60}}[0-9]){_ALNUM}{{24,60}}"),
    ("v1.0-", rf"{_HEX}{{24}}-{_HEX}{{100,160}}"),
    ("tskey-", r"[a-z]{2,10}-[\w-]{16,100}"),
    # Models.
    ("sk-ant- sk-proj- sk-svcacct- sk-admin- sk-None- sk-or- sk-lf-", r"(?=[A-Za-z_-]{0,60}[0-9])[\w-]{16,300}"),
    ("sk-", rf"(?=[A-Za-z]{{0,60}}[0-9]){_ALNUM}{{20,200}}(?![\w-])"),
    ("hf_ api_org_ gsk_ xai- pplx- r8_ jina_ apify_api_", rf"(?=[A-Za-z]{{0,60}}[0-9]){_ALNUM}{{30,120}}"),
    ("nvapi- lsv2_pt_ lsv2_sk_ phx_", r"(?=[A-Za-z_-]{0,60}[0-9])[\w-]{30,120}"),
    ("tvly-", r"(?=[A-Za-z_-]{0,60}[0-9])[\w-]{20,80}"),
    # Mail, chat, money, monitoring and the rest.
    ("xapp- xwfp-", r"(?=[\w-]{0,40}[0-9])[\w-]{14,300}"),
    ("sk_live_ sk_test_ rk_live_ rk_test_ shippo_live_ rzp_live_", rf"(?=[A-Za-z]{{0,60}}[0-9]){_ALNUM}{{14,200}}"),
    ("SG.", r"[\w-]{16,80}\.[\w-]{16,100}"),
    ("key-", rf"(?<![_-]key-){_HEX}{{32}}{_NO_MORE}"),
    ("xkeysib- xsmtpsib-", r"[\w-]{40,120}"),
    ("lin_api_ lin_oauth_", rf"{_ALNUM}{{30,80}}"),
    ("ntn_", rf"{_ALNUM}{{40,60}}"),
    ("secret_", rf"{_ALNUM}{{43}}{_NO_MORE}"),
    ("shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    ("sq0atp- sq0csp- sq0idp-", r"[\w-]{20,60}"),
    ("NRAK- NRAA- NRJS-", r"[A-Z0-9]{20,40}"),
    ("glsa_", r"\w{30,80}"),
    ("glc_ ops_", r"eyJ[\w+/=-]{30,2000}"),
    ("AGE-SECRET-KEY-", r"1[A-Z0-9]{40,70}"),
    ("A3-", r"[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}"),
)
"""What keys begin with, up to a `_`, `-` or `.`, and a pattern of what follows, which begins with 14 letters or so."""

_UNEVEN = (
    # CtrlB: a key or an ingest credential, and a person's session.
    ("ctrlb_ ctrlbi_", r"[a-z0-9][a-z0-9-]{0,31}_[A-Za-z0-9]{12}_[A-Za-z0-9]{20,64}"),
    ("ctrlbs_", rf"{_ALNUM}{{20,64}}"),
    ("dckr_pat_ dckr_oat_", r"[\w-]{20,100}"),
    ("pscale_tkn_ pscale_pw_ pscale_oauth_ sb_secret_", r"[\w-]{24,120}"),
    ("dp.pt. dp.st. dp.ct. dp.sa.", rf"(?:[a-z0-9_-]{{2,35}}\.)?{_ALNUM}{{40,44}}"),
    ("figd_ figu_", r"[\w-]{32,120}"),
    ("whsec_", r"(?=[A-Za-z+/]{0,60}[0-9])[A-Za-z0-9+/=]{20,100}"),
    ("xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.", r"(?=[\w%-]{0,40}[0-9])[\w%+/=-]{10,300}"),
)
"""The same, of keys that go on in another way."""

_AHEAD = {"_": rf"(?={_ALNUM}{{14}})", "-": r"(?=\w[\w-]{13})", ".": r"(?=[\w-]{14})"}
"""What follows the sign in all keys of `_DIVIDED`. It is rare elsewhere, which makes the patterns fast."""

_CAPITALS = re.compile(
    rf"A(?:[KS]IA|BIA|CCA)[A-Z0-9]{{16}}{_NO_MORE}|AIza[\w-]{{30,40}}(?![\w+/=-])"
    rf"|AT(?:A|C)TT3[\w=+/-]{{20,300}}|AT(?:BB|OA)(?=[A-Za-z]{{0,60}}[0-9]){_ALNUM}{{20,60}}"
    rf"|AKID(?=[A-Za-z]{{0,36}}[0-9]){_ALNUM}{{32,36}}{_NO_MORE}"
    rf"|LTAI(?=[A-Za-z]{{0,24}}[0-9]){_ALNUM}{{16,24}}{_NO_MORE}"
    rf"|EAAC(?=[A-Za-z]{{0,60}}[0-9]){_ALNUM}{{60,300}}{_NO_MORE}"
    rf"|SK{_HEX}{{32}}{_NO_MORE}|EAAA[\w-]{{56,64}}(?![\w+/=-])"
    rf"|BBDC-[\w+/=-]{{20,100}}|FlyV1 fm[0-9]_[\w+/=,-]{{30,900}}"
)
"""Keys that begin with a capital letter, and have no sign that they could be found by."""

_RARE = (
    # A literal without which the pattern cannot match, and the pattern.
    ("/console/#code=", r"(?<=/console/#code=)[A-Za-z0-9]{20,64}"),
    (
        "eyJ",
        r"eyJ(?:(?<![\w-]eyJ)|(?<=\\neyJ)|(?<=%[0-9A-F]{2}eyJ)|(?<=[0-9]meyJ))"
        r"[\w-]{10,8000}\.[\w-]{8,16000}(?:\.[\w-]{1,2000}){0,3}",
    ),
    (
        # A private key's block, once more in base64.
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURS|BQUklWQVRF|BFQyBQUklWQVRF|BPUEVOU1NI|BFTkNSWVBURUQg)[A-Za-z0-9+/=]{20,16384}",
    ),
    # What AWS gives out for some hours: a session, and a password for its registry of images.
    ("IQoJb3JpZ2lu", r"IQoJb3JpZ2lu[A-Za-z0-9+/=]{60,8192}"),
    ("FwoGZXIvYXdz", r"FwoGZXIvYXdz[A-Za-z0-9+/=]{60,8192}"),
    ("eyJwYXlsb2FkIjoi", r"eyJwYXlsb2FkIjoi[\w+/=-]{100,16384}"),
    ("Q~", r"[\w~.-]{3}[0-9]Q~[\w~.-]{31,34}(?![\w~-])"),
    (":AA", r"(?<![0-9:])[0-9]{8,10}:AA[\w-]{33}(?![\w-])"),
    (".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{30,100}"),
    ("1//0", r"1//0[\w-]{40,200}"),
    ("dapi", rf"dapi{_HEX}{{32}}(?:-[0-9])?{_NO_MORE}"),
    ("re_", r"re_(?=[A-Za-z_]{0,40}[0-9])[A-Za-z0-9]{8}_[A-Za-z0-9]{20,40}"),
    ("pat", rf"pat[A-Za-z0-9]{{14}}\.{_HEX}{{64}}"),
    ("dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("hooks.slack.com/", r"(?<=hooks\.slack\.com/)[a-z]{5,12}/[\w/+-]{20,200}"),
    ("/api/webhooks/", r"(?<=/api/webhooks/)[0-9]{15,22}/[\w-]{50,100}"),
    (
        "$",
        r"\$(?:2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}|[56]\$[./A-Za-z0-9=,]{1,40}\$[./A-Za-z0-9$]{22,120}"
        r"|y\$[./A-Za-z0-9]{1,10}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}|1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
        r"|apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|argon2id?\$[\w=,$]{8,60}\$[\w+/]{10,60}\$[\w+/]{20,120})",
    ),
    ("pbkdf2_sha", r"pbkdf2_sha(?:1|256|512)\$[0-9]{1,9}\$[\w./+-]{1,100}\$[\w./+-]{20,120}={0,2}"),
    # A secret key of minisign, and what signs messages to telephones.
    ("RWRTY0Iy", r"RWRTY0Iy[A-Za-z0-9+/]{100,400}={0,2}"),
    (":APA91b", r"AAAA[\w-]{7}:APA91b[\w-]{100,200}"),
    # A file of Docker's in base64, as Kubernetes keeps it.
    ("eyJhdXRocyI6", r"eyJhdXRocyI6[A-Za-z0-9+/]{20,16384}={0,2}"),
    ("/webhookb2/", r"(?<=/webhookb2/)[\w@/-]{60,400}"),
)
_BOT = r"\.(?:(?<=[MNO][\w-]{23}\.)|(?<=[MNO][\w-]{25}\.))[\w-]{6}\.[\w-]{27,40}(?![\w-]|\.\w)"
"""A Discord bot's token, without its first part, of 24 or 26 characters."""

_FREE_BEFORE = re.compile(r"\\[abfnrtv]\Z|%[0-9A-Fa-f]{2}\Z|\\u00[0-9A-Fa-f]{2}\Z|[\[;][0-9]{1,2}m\Z")
"""What may stand before a key beside a sign: an escape, as of a new line, or a terminal's colour."""


def _by_sign(sign: str) -> re.Pattern[str]:
    """One pattern for the prefixes that end with the sign. It begins at the sign, where matching is tried seldom."""
    return re.compile(f"{re.escape(sign)}(?:{_AHEAD[sign]}{_endings(_DIVIDED, sign)}|{_endings(_UNEVEN, sign)})")


def _endings(keys: tuple[tuple[str, str], ...], sign: str) -> str:
    ends, last = [], set[str]()
    for prefixes, rest in keys:
        names = [prefix for prefix in prefixes.split() if prefix.endswith(sign)]
        last.update(prefix[-2] for prefix in names)
        if names:
            behind = "|".join(f"(?<={re.escape(prefix)})" for prefix in names)
            ends.append(f"(?:{behind})(?:{rest})")
    return f"(?<=[{''.join(sorted(last))}]{re.escape(sign)})(?:{'|'.join(ends)})"


_PATTERNS = (
    ("_", _by_sign("_")),
    ("-", _by_sign("-")),
    (".", _by_sign(".")),
    ("", _CAPITALS),
    *((literal, re.compile(pattern)) for literal, pattern in (*_RARE, (".", _BOT))),
)
_PREFIXES = sorted(
    (prefix for prefixes, _ in (*_DIVIDED, *_UNEVEN) for prefix in prefixes.split()), key=len, reverse=True
)

_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_AWS_NEAR_CHARS = 300
_AWS_ID = re.compile(r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}")
_ONLY_HEX = re.compile(r"[0-9a-f]{40}|[0-9A-F]{40}")


def without_known_forms(text: str) -> str:
    """The text with every secret that is known by its form replaced."""
    return replaced(text, [span for literal, pattern in _PATTERNS if literal in text for span in _spans(text, pattern)])


def may_have_known_form(text: str) -> bool:
    """Whether `without_known_forms` would change the text."""
    return any(_spans(text, pattern) for literal, pattern in _PATTERNS if literal in text)


def replaced(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with what lies in the spans replaced; of spans that overlap, the one that begins first."""
    if not spans:
        return text
    parts, done = [], 0
    for start, end in sorted(spans):
        if start >= done:
            parts += [text[done:start], REDACTED]
            done = end
    return "".join([*parts, text[done:]])


def _spans(text: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    spans = []
    found = pattern.search(text)
    while found:
        start, end = _start(text, found), found.end()
        if _begins_word(text, start) and not _is_example(text[start:end]):
            spans.append((start, end))
            if _AWS_ID.match(text, start):
                spans += _aws_secrets(text, end)
        else:
            end = found.start() + 1
        found = pattern.search(text, end)
    return spans


def _start(text: str, found: re.Match[str]) -> int:
    """Where the key begins, of which the match may have left out what is before its sign."""
    start = found.start()
    if text[start] not in "_-.":
        return start
    for prefix in _PREFIXES:
        if text.startswith(prefix, start + 1 - len(prefix)) and start + 1 >= len(prefix):
            return start + 1 - len(prefix)
    return start - 24 if text[start - 24] in "MNO" and _begins_word(text, start - 24) else start - 26


def _begins_word(text: str, start: int) -> bool:
    return start == 0 or not text[start - 1].isalnum() or bool(_FREE_BEFORE.search(text[max(0, start - 6) : start]))


def _is_example(secret: str) -> bool:
    """Whether it is filled up with the same few characters, as in a document."""
    return len(set(secret[-12:])) < MIN_CHARACTERS


def _aws_secrets(text: str, start: int) -> list[tuple[int, int]]:
    """An AWS secret has no form of its own: 40 characters of base64, soon behind the id of the key."""
    found = _AWS_SECRET.finditer(text, start, min(len(text), start + _AWS_NEAR_CHARS))
    return [secret.span() for secret in found if not _ONLY_HEX.fullmatch(secret[0])]
