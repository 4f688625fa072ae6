"""Where known commands, calls, programs and files have a password: behind an option, or in a place of its own."""

from __future__ import annotations

import re

_QUOTE = r"\\{0,15}[\"']?"
_OPTION = r"[ \t][^\n|;&]{0,200}?(?<=[ \t])"
_ECHO = r"(?:echo|printf)[ \t]{1,4}(?:-n[ \t]{1,4})?\\{0,15}[\"']?"
_PIPED = r"([^\s\"'`|\\]{1,200})\\{0,15}[\"']?[ \t]{0,4}\|[ \t]{0,4}"
_TWO_STRINGS = r"[ \t]{0,4}\\{0,15}[\"'][^\"'\\\n]{1,80}\\{0,15}[\"'],[ \t]{0,4}\\{0,15}[\"']([^\"'\\\n]{1,200})"
_WORD = r"([^\s\"'`\\]{1,200})"
_STRING = r"\\{0,15}[\"'][^\"'\\\n]{0,200}\\{0,15}[\"']"
_THIRD = rf"\([ \t]{{0,4}}{_STRING},[ \t]{{0,4}}{_STRING},[ \t]{{0,4}}\\{{0,15}}[\"']([^\"'\\\n]{{1,200}})"
_MADE = re.compile(
    r"(?:enerated|emporary|nitial)[ \t](?:[\w-]{1,20}[ \t]){0,3}password(?: is)?"
    r"(?: generated)?(?: for [\w@.%-]{1,80})?(?: is)?"
    r":[ \t]{1,4}([^\s\"'`\\]{6,100})"
)
_GO_PASSWORD = re.compile(r"(?<=[\w-]):([^\s\"'`\\@]{1,128})@(?:tcp|unix)\(")
_SQL_STRING = r"\\{0,15}[\"']([^\"'\\\n]{1,200})"
_IDENTIFIED_BY = re.compile(
    r"(?i:identified(?:[ \t]{1,4}with[ \t]{1,4}[\w'\"]{1,40})?[ \t]{1,4}by)[ \t]{1,4}(?i:password[ \t]{1,4})?"
    + _SQL_STRING
)
SQL_PASSWORD = re.compile(r"(?:PASSWORD[ \t]{0,4}\([ \t]{0,4}|(?:PASSWORD|password)[ \t]{1,4})" + _SQL_STRING)
SQL_BEFORE = re.compile(r"(?i)\b(?:create|alter|set|grant|user|role|login|with|encrypted)\b")
COMMANDS = (
    ("mysql", re.compile(rf"mysql[\w-]{{0,12}}{_OPTION}-p(?![0-9]{{2,5}}(?:[:\s]|\Z))([^\s\"'`\\;|&]{{1,200}})")),
    ("mariadb", re.compile(rf"mariadb[\w-]{{0,12}}{_OPTION}-p([^\s\"'`\\;|&]{{1,200}})")),
    ("sshpass", re.compile(rf"sshpass[ \t]{{1,4}}-p[ \t]{{0,4}}{_QUOTE}([^\s\"'`\\]{{1,200}})")),
    ("redis-cli", re.compile(rf"redis-cli{_OPTION}-a[ \t]{{1,4}}{_QUOTE}([^\s\"'`\\]{{1,200}})")),
    (
        "login",
        re.compile(
            rf"(?:docker|podman|helm registry|oras|buildah|skopeo) login{_OPTION}-p[ \t]{{1,4}}{_QUOTE}"
            r"([^\s\"'`\\]{1,200})"
        ),
    ),
    ("login", re.compile(r"login[ \t]{1,9}\S{1,80}(?:\s|[0-9→:|+>-]|\\{1,15}n){1,40}password[ \t]{1,9}(\S{1,200})")),
    ("aws_", re.compile(r"aws_(?:secret_access_key|session_token)[ \t]{1,9}([A-Za-z0-9/+=]{20,2048})")),
    (" pass:", re.compile(r"-pass(?:in|out|word)?[ \t]{1,4}pass:([^\s\"'`\\]{1,200})")),
    (
        " -p",
        re.compile(
            rf"(?:mongosh|mongodump|mongorestore|mongoexport|mongoimport|mongo)"
            rf"{_OPTION}-p[ \t]{{1,4}}{_QUOTE}([^\s\"'`\\]{{1,200}})"
        ),
    ),
    ("sudo -S", re.compile(rf"{_ECHO}{_PIPED}sudo -S")),
    ("-stdin", re.compile(rf"{_ECHO}{_PIPED}[^\n|;&]{{0,120}}--password-stdin")),
    ("--with-token", re.compile(rf"{_ECHO}{_PIPED}[^\n|;&]{{0,120}}--with-token")),
    ("chpasswd", re.compile(_ECHO + r"[\w.-]{1,64}:" + _PIPED + r"(?:sudo )?chpasswd")),
    ("auth=(", re.compile(rf"auth=\({_TWO_STRINGS}")),
    (".login(", re.compile(rf"\.login\({_TWO_STRINGS}")),
    ("SecureString", re.compile(rf"ConvertTo-SecureString (?:-String )?{_QUOTE}([^\s\"'`\\]{{1,200}})")),
    (":5432:", re.compile(r":5432:[\w*.-]{1,63}:[\w*.-]{1,63}:([^\s:\"'`\\]{1,200})")),
    ("@tcp(", _GO_PASSWORD),
    ("@unix(", _GO_PASSWORD),
    ("IDENTIFIED", _IDENTIFIED_BY),
    ("identified", _IDENTIFIED_BY),
    ("oracle:thin:", re.compile(r"oracle:thin:[\w$#]{1,60}/([^\s\"'`\\@]{1,200})@")),
    # Commands, and what follows a password's option, or stands in its place.
    ("az login", re.compile(rf"az login{_OPTION}-p[ \t]{{1,4}}{_QUOTE}{_WORD}")),
    ("requirepass", re.compile(rf"requirepass(?:\\{{0,15}}[\"'],)?[ \t]{{1,4}}{_QUOTE}{_WORD}")),
    ("pass ", re.compile(rf"-(?:src|dest)?(?:store|key)pass[ \t]{{1,4}}{_QUOTE}{_WORD}")),
    ("http-basic", re.compile(rf"http-basic\.[\w-]{{1,60}}[ \t]{{1,4}}\S{{1,80}}[ \t]{{1,4}}{_QUOTE}{_WORD}")),
    ("operator unseal", re.compile(r"operator unseal[ \t]{1,4}([A-Za-z0-9+/=]{20,200})")),
    ("Unseal Key ", re.compile(r"Unseal Key [0-9]{1,2}:[ \t]{1,4}([A-Za-z0-9+/=]{30,100})")),
    ("wandb login", re.compile(r"wandb login[ \t]{1,4}(?:--relogin[ \t]{1,4})?([0-9a-f]{40})")),
    ("cargo login", re.compile(r"cargo login[ \t]{1,4}(\w{20,100})")),
    ("authtoken ", re.compile(r"(?:add-|ngrok )authtoken[ \t]{1,4}(\w{20,100})")),
    (
        "htpasswd",
        re.compile(
            rf"htpasswd[ \t]{{1,4}}-[A-Za-z]{{0,5}}b[A-Za-z]{{0,5}}(?:[ \t]{{1,4}}\S{{1,200}}){{2}}"
            rf"[ \t]{{1,4}}{_QUOTE}{_WORD}"
        ),
    ),
    ("smbclient", re.compile(rf"smbclient{_OPTION}-U[ \t]{{1,4}}{_QUOTE}[\w.-]{{1,80}}%{_WORD}")),
    ("openssl", re.compile(rf"openssl (?:enc|aes)[\w-]{{0,20}}{_OPTION}-k[ \t]{{1,4}}{_QUOTE}{_WORD}")),
    ("ldap", re.compile(rf"ldap(?:search|add|modify|delete|passwd|whoami){_OPTION}-w[ \t]{{1,4}}{_QUOTE}{_WORD}")),
    (
        "secret set",
        re.compile(rf"secret set{_OPTION}(?:--body[ \t=]{{1,4}}|--value[ \t=]{{1,4}}|-b[ \t]{{0,4}}){_QUOTE}{_WORD}"),
    ),
    ("secret put", re.compile(rf"{_ECHO}{_PIPED}(?:npx )?wrangler secret put")),
    ("gcloud secrets", re.compile(rf"{_ECHO}{_PIPED}gcloud secrets (?:create|versions add)")),
    (
        "put-parameter",
        re.compile(rf"put-parameter(?=[^\n]{{0,400}}SecureString){_OPTION}--value[ \t=]{{1,4}}{_QUOTE}{_WORD}"),
    ),
    ("secret_id=", re.compile(r"secret_id=([0-9a-f-]{36})")),
    ("SecretID", re.compile(r"SecretID:[ \t]{1,12}([0-9a-f-]{36})")),
    ("sqlcmd", re.compile(rf"sqlcmd{_OPTION}-P[ \t]{{0,4}}{_QUOTE}{_WORD}")),
    ("sqlplus", re.compile(r"sqlplus[ \t](?:-\w{1,4}[ \t]){0,3}[\w$#]{1,60}/([^\s\"'`\\@]{1,200})@")),
    (" -password ", re.compile(rf"(?<=[ \t])-password[ \t]{{1,4}}{_QUOTE}{_WORD}")),
    (
        "rabbitmqctl",
        re.compile(rf"rabbitmqctl (?:add_user|change_password)[ \t]{{1,4}}\S{{1,80}}[ \t]{{1,4}}{_QUOTE}{_WORD}"),
    ),
    ("mc alias set", re.compile(rf"mc alias set(?:[ \t]{{1,4}}\S{{1,200}}){{3}}[ \t]{{1,4}}{_QUOTE}{_WORD}")),
    ("net user", re.compile(r"net user[ \t]{1,4}[\w.-]{1,60}[ \t]{1,4}([^\s\"'`\\/*][^\s\"'`\\]{1,200})[ \t]{1,4}/")),
    ("lftp", re.compile(rf"lftp{_OPTION}-u[ \t]{{1,4}}{_QUOTE}[\w.@-]{{1,80}},{_WORD}")),
    ("nuget", re.compile(rf"nuget push{_OPTION}(?:-k|-ApiKey|--api-key)[ \t]{{1,4}}{_QUOTE}{_WORD}")),
    ("netlify", re.compile(rf"netlify{_OPTION}--auth[ \t=]{{1,4}}{_QUOTE}{_WORD}")),
    ("mysql", re.compile(r"mysql[\w-]{0,12}\\{0,15}[\"'],[^\n\]]{0,200}?[\"']-p([^\s\"'`\\,]{1,200})")),
    # Calls.
    ("connect(", re.compile(rf"connect{_THIRD}")),
    ("getConnection(", re.compile(rf"getConnection{_THIRD}")),
    ("PDO(", re.compile(rf"PDO{_THIRD}")),
    ("mysqli(", re.compile(rf"mysqli{_THIRD}")),
    ("HTTPBasicAuth(", re.compile(rf"HTTPBasicAuth\({_TWO_STRINGS}")),
    ("wilio(", re.compile(rf"wilio\({_TWO_STRINGS}")),
    (
        "jwt.",
        re.compile(
            r"jwt\.(?:sign|verify|encode|decode)\([ \t]{0,4}[\w.]{1,60},[ \t]{0,4}\\{0,15}[\"']([^\"'\\\n]{1,200})"
        ),
    ),
    # What programs print, and addresses.
    ("enerated ", _MADE),
    ("emporary ", _MADE),
    ("nitial ", _MADE),
    (" created: ", re.compile(r"(?:[kK]ey|[tT]oken|[sS]ecret) created: {1,4}([\w+/=-]{20,200})")),
    (
        "assword for ",
        re.compile(r"assword for [\w@.-]{1,60} is[ \t]{1,4}\\{0,15}[\"'`]([^\s\"'`\\]{4,100})\\{0,15}[\"'`]"),
    ),
    (
        "%3",
        re.compile(r"(?i)(?:password|passwd|pwd|token|secret|api_?key)(?:%22)?%3[AD](?:%22)?([^\s%&\"'`\\<>]{4,2000})"),
    ),
    ("appid=", re.compile(r"[?&]appid=([0-9a-f]{32})(?![0-9a-f])")),
    ("telegram.org/bot", re.compile(r"telegram\.org/bot([0-9]{6,12}:[\w-]{30,50})")),
    (":x-oauth-basic@", re.compile(r"//([\w-]{20,256}):x-oauth-basic@")),
    (":*:", re.compile(r"(?:[0-9]{2,5}|\*):\*:[\w.-]{1,63}:([^\s:\"'`\\]{1,200})")),
    ("bindpw", re.compile(rf"bindpw[ \t]{{1,9}}{_QUOTE}{_WORD}")),
    ("rootpw", re.compile(rf"rootpw:?[ \t]{{1,9}}{_QUOTE}{_WORD}")),
    ("psk=", re.compile(r"(?<![\w-])psk=\\{0,15}[\"']?([^\s\"'`\\]{8,63})")),
)
"""A word that is in the text, and a pattern whose group is a password."""
