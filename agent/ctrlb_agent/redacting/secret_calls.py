"""Where calls in source code, statements of SQL and addresses have a password in a place of its own.

The table is as the one of `secret_commands`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctrlb_agent.redacting.secret_commands import Rows

_STRING = r"\\{0,15}[\"'][^\"'\\\n]{0,200}\\{0,15}[\"']"
_OPENED = r"[ \t]{0,4}\\{0,15}[\"']([^\"'\\\n]{1,200})"
_SECOND = rf"\([ \t]{{0,4}}(?:{_STRING}|[\w.]{{1,60}}),{_OPENED}"
_THIRD = rf"\([ \t]{{0,4}}(?:{_STRING}|[\w.$]{{1,60}}),[ \t]{{0,4}}{_STRING},{_OPENED}"
_TWO_STRINGS = rf"\([ \t]{{0,4}}\\{{0,15}}[\"'][^\"'\\\n]{{1,80}}\\{{0,15}}[\"'],{_OPENED}"
_PAIR = r"\([ \t]{0,4}b?\\{0,15}[\"'][\w.@-]{1,80}:([^\s\"'\\]{1,200})\\{0,15}[\"']"
"""A user and a password in one string."""
_GO_PASSWORD = r"(?<=[\w-]):([^\s\"'`\\@]{1,128})@(?:tcp|unix)\("

_SQL_STRING = r"\\{0,15}[\"']([^\"'\\\n]{1,200})"
_IDENTIFIED_BY = (
    r"(?i:identified(?:[ \t]{1,4}with[ \t]{1,4}[\w'\"]{1,40})?[ \t]{1,4}by)[ \t]{1,4}(?i:password[ \t]{1,4})?"
    r"(?:\\{0,15}[\"'](?P<secret>[^\"'\\\n]{1,200})|(?-i:(?=\w{0,60}[0-9])(\w{6,60})(?=[\s;]|\Z)))"
)
SQL_PASSWORD = re.compile(r"(?:PASSWORD[ \t]{0,4}\([ \t]{0,4}|(?:PASSWORD|password)[ \t]{1,4})" + _SQL_STRING)
SQL_BEFORE = re.compile(r"(?i)\b(?:create|alter|set|grant|user|role|login|with|encrypted)\b")

CALLS: Rows = (
    ("auth=(", (rf"auth={_TWO_STRINGS}",)),
    (".login(", (rf"\.login{_TWO_STRINGS}",)),
    ("onnect", (rf"onnect{_THIRD}", rf"getConnection{_THIRD}")),
    ("PDO(", (rf"PDO{_THIRD}",)),
    ("mysqli(", (rf"mysqli{_THIRD}",)),
    ("HTTPBasicAuth(", (rf"HTTPBasicAuth{_TWO_STRINGS}",)),
    ("wilio(", (rf"wilio{_TWO_STRINGS}",)),
    ("jwt.", (rf"jwt\.(?:sign|verify|encode|decode)\([ \t]{{0,4}}[\w.]{{1,60}},{_OPENED}",)),
    ("btoa(", (rf"btoa{_PAIR}",)),
    ("b64encode(", (rf"b64encode{_PAIR}",)),
    ("uffer.from(", (rf"uffer\.from{_PAIR}",)),
    ("_SALT", (r"define\([ \t]{0,4}'[A-Z_]{4,20}_SALT',[ \t]{0,9}'([^'\n]{40,100})'",)),
    ("_KEY'", (r"define\([ \t]{0,4}'[A-Z_]{4,20}_KEY',[ \t]{0,9}'([^'\n]{40,100})'",)),
    ("accounts", (r"accounts\\{0,15}[\"']?:[ \t]{0,4}\[\s{0,20}\\{0,15}[\"'](0x[0-9a-fA-F]{64})",)),
    # SQL.
    ("IDENTIFIED", (_IDENTIFIED_BY,)),
    ("identified", (_IDENTIFIED_BY,)),
    ("PASSWORD", (rf"PASSWORD FOR [^\n=;]{{1,100}}=[ \t]{{0,4}}{_SQL_STRING}",)),
)
"""Calls, and statements of SQL."""

USERS: Rows = (
    ("@tcp(", (_GO_PASSWORD,)),
    ("@unix(", (_GO_PASSWORD,)),
    ("oracle:thin:", (r"oracle:thin:[\w$#]{1,60}/([^\s\"'`\\@]{1,200})@",)),
    (":x-oauth-basic@", (r"//([\w-]{20,256}):x-oauth-basic@",)),
    ("sqlplus", (r"sqlplus[ \t](?:-\w{1,4}[ \t]){0,3}[\w$#]{1,60}/([^\s\"'`\\@]{1,200})@",)),
)
"""What stands before the host in an address, in texts that have an `@`."""

ESCAPED: Rows = (
    ("%3", (r"(?i)(?:password|passwd|pwd|token|secret|api_?key)(?:%22)?%3[AD](?:%22)?([^\s%&\"'`\\<>]{4,2000})",)),
)
"""What stands in an address within an address, in texts that have a `%`."""
