"""Where known commands, and what programs print or keep, have a password: behind an option, or in a place of its own.

Each row is a word without which none of the row's patterns can match, and the patterns, whose group `secret`, or the
first, is what may be a password. A pattern is compiled when its word is met for the first time.
"""

from __future__ import annotations

import re

Rows = tuple[tuple[str, tuple[str, ...]], ...]

_BEHIND = r"[ \t][^\n|;&]{0,200}?(?<=[ \t])"
"""What stands between a command and its option."""
_QUOTE = r"\\{0,15}[\"']?"
_WORD = r"([^\s\"'`\\]{1,200})"
_GIVEN = (
    r"(?!-)(?P<quote>\\{0,15}[\"'])?"
    r"(?P<secret>(?(quote)[^\"'\\\n]{1,200}(?=\\{0,15}[\"']|\Z)|[^\s\"'`\\;|&<>]{1,200}))"
)
"""An argument, in quotes or without."""
_NEXT = r"[ \t]{1,4}" + _GIVEN
_NEXT_OR_EQUALS = r"(?:[ \t]{1,4}|=)" + _GIVEN
_SAID = r"[ \t]{1,4}(?:-n[ \t]{1,4})?\\{0,15}[\"']?"
_PIPED = r"([^\s\"'`|\\]{1,200})\\{0,15}[\"']?[ \t]{0,4}\|[ \t]{0,4}"
_READERS = (
    r"(?:sudo -S|(?:npx )?wrangler secret put|gcloud secrets (?:create|versions add)"
    r"|[^\n|;&]{0,120}--(?:password-stdin|with-token))"
)
"""Programs that take a secret from what is piped to them."""
_USER_READERS = r"(?:(?:sudo )?chpasswd|base64)"
_LINE_BEGIN = r"(?:(?<=\n)|(?<=\\n))(?=(/?[\w.][\w./-]{0,79}[:-](?:[0-9]{1,6}[→\t:|-])?|[0-9]{1,6}[→\t:|-]))\1"
"""What tools put before a line, taken whole: were there two ways to take it, many lines would have millions."""
_NUMBER = r"(?<!\n)(?<!\\n)[0-9]{1,6}[→\t:|-]"
_LINE_BETWEEN = rf"(?:\s|\\{{1,15}}[nrt]|[+>#*/|-]|{_NUMBER}|{_LINE_BEGIN}){{1,40}}?"

_PASSWORDS = (
    r"-pass(?:in|out|word)?[ \t]{1,4}pass:([^\s\"'`\\]{1,200})",
    rf"requirepass(?:\\{{0,15}}[\"'],)?{_NEXT}",
    rf"-(?:src|dest)?(?:store|key)pass{_NEXT}",
    rf"-password(?<=[ \t]-password){_NEXT}",
    r"htpasswd[ \t]{1,4}-(?=[A-Za-z]{0,6}b)(?:[A-Za-z]{0,6}n[A-Za-z]{0,6}|[A-Za-z]{1,8}[ \t]{1,4}\S{1,200})"
    rf"[ \t]{{1,4}}\S{{1,200}}{_NEXT}",
    rf"nmcli[ \t][^\n|;&]{{0,200}}?[ \t]password{_NEXT}",
    *(
        rf"{made}[ \t](?:[\w-]{{1,20}}[ \t]){{0,3}}password(?: is)?"
        r"(?: generated)?(?: for [\w@.%-]{1,80})?(?: is)?:[ \t]{1,4}([^\s\"'`\\]{6,100})"
        for made in ("enerated", "emporary", "nitial")
    ),
    r"assword for [\w@.-]{1,60} is[ \t]{1,4}\\{0,15}[\"'`]([^\s\"'`\\]{4,100})\\{0,15}[\"'`]",
)
"""Where the word itself stands before a password."""

OPTION = re.compile(r" -[pPakwuUNAX]")
OPTIONS: Rows = (
    (
        "login",
        (
            r"(?:docker|podman|nerdctl|helm registry|oras|buildah|skopeo|az|oc|cf|argocd) login"
            rf"{_BEHIND}-p{_NEXT_OR_EQUALS}",
        ),
    ),
    ("twine", (rf"twine upload{_BEHIND}-p{_NEXT}",)),
    ("mysql", (rf"mysql[\w-]{{0,12}}{_BEHIND}-p(?![0-9]{{2,5}}(?:[:\s]|\Z)){_GIVEN}",)),
    ("mariadb", (rf"mariadb[\w-]{{0,12}}{_BEHIND}-p{_GIVEN}",)),
    ("mongo", (rf"mongo(?:sh|dump|restore|export|import)?{_BEHIND}-p{_NEXT}",)),
    ("redis-cli", (rf"redis-cli{_BEHIND}-a{_NEXT}",)),
    ("sqlcmd", (rf"sqlcmd{_BEHIND}-P[ \t]{{0,4}}{_GIVEN}",)),
    ("sshpass", (rf"sshpass[ \t]{{1,4}}-p[ \t]{{0,4}}{_GIVEN}",)),
    ("ssh-keygen", (rf"ssh-keygen{_BEHIND}-N{_NEXT}",)),
    ("zip", (rf"zip(?:[ \t][^\n|;&]{{0,200}}?)?[ \t]-P[ \t]{{0,4}}{_GIVEN}",)),
    ("7z", (rf"7z[ar]?{_BEHIND}-p{_GIVEN}",)),
    ("http", (rf"https?[ \t]{{1,4}}-a[ \t]{{1,4}}{_QUOTE}[\w.@+-]{{1,80}}:{_WORD}",)),
    ("openssl", (rf"openssl (?:enc|aes)[\w-]{{0,20}}{_BEHIND}-k{_NEXT}",)),
    ("nuget", (rf"nuget push{_BEHIND}-k{_NEXT}",)),
    ("ldap", (rf"ldap(?:search|add|modify|delete|passwd|whoami){_BEHIND}-w{_NEXT}",)),
    ("smbclient", (rf"smbclient{_BEHIND}-U[ \t]{{1,4}}{_QUOTE}[\w.-]{{1,80}}%{_WORD}",)),
    ("lftp", (rf"lftp{_BEHIND}-u[ \t]{{1,4}}{_QUOTE}[\w.@-]{{1,80}},{_WORD}",)),
    ("snmp", (rf"snmp\w{{2,10}}{_BEHIND}-A{_NEXT}", rf"snmp\w{{2,10}}{_BEHIND}-X{_NEXT}")),
)
"""Commands whose option of one letter has a password, in texts in which `OPTION` finds one."""

PIPED: Rows = (
    ("echo ", (rf"echo{_SAID}{_PIPED}{_READERS}", rf"echo{_SAID}[\w.@-]{{1,80}}:{_PIPED}{_USER_READERS}")),
    ("printf ", (rf"printf{_SAID}{_PIPED}{_READERS}", rf"printf{_SAID}[\w.@-]{{1,80}}:{_PIPED}{_USER_READERS}")),
)
"""What is piped to a command, in texts that have a `|`."""

COMMANDS: Rows = (
    # Signing in, and passwords that programs ask for by words.
    (
        "login",
        (
            rf"login[ \t]{{1,9}}\S{{1,80}}{_LINE_BETWEEN}password[ \t]{{1,9}}([^\s\"`\\]{{1,200}})",
            r"wandb login[ \t]{1,4}(?:--relogin[ \t]{1,4})?([0-9a-f]{40})",
            r"cargo login[ \t]{1,4}(\w{20,100})",
            r"vault login[ \t]{1,4}(s\.\w{20,100})",
            r"sonar\.login=(\w{40,60})",
        ),
    ),
    ("authtoken ", (r"(?:add-|ngrok )authtoken[ \t]{1,4}(\w{20,100})",)),
    ("http-basic", (rf"http-basic\.[\w-]{{1,60}}[ \t]{{1,4}}\S{{1,80}}{_NEXT}",)),
    ("netlify", (rf"netlify{_BEHIND}--auth[ \t=]{{1,4}}{_GIVEN}",)),
    (
        "cloudflared",
        (r"cloudflared[ \t](?:service install|tunnel[^\n|;&]{0,80}--token)[ \t=]{1,4}(eyJ[\w+/=-]{60,2000})",),
    ),
    ("pass", _PASSWORDS),
    # Databases.
    (
        "mysql",
        (
            r"mysql[\w-]{0,12}\\{0,15}[\"'],[^\n\]]{0,200}?[\"']-p([^\s\"'`\\,]{1,200})",
            rf"mysqladmin{_BEHIND}password{_NEXT}",
        ),
    ),
    ("redis", (rf"redis(?:-cli[^\n|;&]{{0,80}}[ \t]|[^\n>]{{0,60}}>[ \t]{{0,2}})(?i:auth){_NEXT}",)),
    (":5432:", (r":5432:[\w*.-]{1,63}:[\w*.-]{1,63}:([^\s:\"'`\\]{1,200})",)),
    # Where secrets are kept.
    ("aws_", (r"aws_(?:secret_access_key|session_token)[ \t]{1,9}([A-Za-z0-9/+=]{20,2048})",)),
    ("secret set", (rf"secret set{_BEHIND}(?:--body[ \t=]{{1,4}}|--value[ \t=]{{1,4}}|-b[ \t]{{0,4}}){_GIVEN}",)),
    ("secret_id=", (r"secret_id=([0-9a-f-]{36})",)),
    ("put-parameter", (rf"put-parameter(?=[^\n]{{0,400}}SecureString){_BEHIND}--value[ \t=]{{1,4}}{_GIVEN}",)),
    (
        "nseal ",
        (
            r"operator unseal[ \t]{1,4}([A-Za-z0-9+/=]{20,200})",
            r"Unseal Key [0-9]{1,2}:[ \t]{1,4}([A-Za-z0-9+/=]{30,100})",
        ),
    ),
    ("mc alias set", (rf"mc alias set(?:[ \t]{{1,4}}\S{{1,200}}){{3}}{_NEXT}",)),
    # Users.
    ("rabbitmqctl", (rf"rabbitmqctl (?:add_user|change_password)[ \t]{{1,4}}\S{{1,80}}{_NEXT}",)),
    ("net user", (r"net user[ \t]{1,4}[\w.-]{1,60}[ \t]{1,4}([^\s\"'`\\/*][^\s\"'`\\]{1,200})[ \t]{1,4}/",)),
    # Windows.
    ("SecureString", (rf"ConvertTo-SecureString (?:-String )?{_GIVEN}",)),
    ("ApiKey ", (rf"nuget push{_BEHIND}-ApiKey{_NEXT}",)),
    # Files and addresses.
    ("appid=", (r"[?&]appid=([0-9a-f]{32})(?![0-9a-f])",)),
    ("telegram.org/bot", (r"telegram\.org/bot([0-9]{6,12}:[\w-]{30,50})",)),
    (":*:", (r"(?:[0-9]{2,5}|\*):\*:[\w.-]{1,63}:([^\s:\"'`\\]{1,200})",)),
    ("bindpw", (rf"bindpw[ \t]{{1,9}}{_GIVEN}",)),
    ("rootpw", (rf"rootpw:?[ \t]{{1,9}}{_GIVEN}",)),
    ("psk=", (r"(?<![\w-])psk=\\{0,15}[\"']?([^\s\"'`\\]{8,63})",)),
    ('"kty', (r"\"(?:d|p|q|dp|dq|qi|k)\\{0,15}\"[ \t]{0,4}:[ \t]{0,4}\\{0,15}\"([\w-]{20,2000})",)),
    ("dockerconfigjson", (r"dockerconfigjson\\{0,15}[\"']?:[ \t]{1,9}\\{0,15}[\"']?([A-Za-z0-9+/]{20,16384}={0,2})",)),
    # What programs print.
    (" created: ", (r"(?:[kK]ey|[tT]oken|[sS]ecret) created: {1,4}([\w+/=-]{20,200})",)),
    ("SecretID", (r"SecretID:[ \t]{1,12}([0-9a-f-]{36})",)),
    # What Terraform would change a secret into, the old one of which was replaced before.
    ('[REDACTED]" -> ', (r"\[REDACTED\]\" -> \"([^\"\\\n]{1,400})\"",)),
    ('[REDACTED]\\" -> ', (r"\[REDACTED\]\\{1,15}\" -> \\{1,15}\"([^\"\\\n]{1,400})\\{1,15}\"",)),
)
