"""An OpenID Connect issuer on this machine, with real keys, for tests of people's tokens."""

import base64
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.issuer_flow import Misused, SignInFlow

AUDIENCE = "the-client"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def rsa_key(bits: int = 2_048) -> rsa.RSAPrivateKey:
    """A new key."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=bits)


def base64url(content: bytes) -> str:
    """As a token writes bytes."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def public_jwk(key: PrivateKey, key_id: str) -> dict[str, Any]:
    """The key's public half as a key set lists it."""
    if isinstance(key, rsa.RSAPrivateKey):
        written: dict[str, Any] = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        return {**written, "kid": key_id, "use": "sig", "alg": "RS256"}
    written = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**written, "kid": key_id, "use": "sig", "alg": "ES256"}


class LocalIssuer:
    """Serves a discovery document and a key set, and counts how often it is asked for each path."""

    def __init__(self) -> None:
        self.keys: dict[str, PrivateKey] = {"first": rsa_key()}
        self.asked: list[str] = []
        self.answer: Callable[[BaseHTTPRequestHandler, str], None] | None = None
        """Answers in the issuer's place."""
        self.discovery: dict[str, Any] = {}
        """What the discovery document says instead."""
        self.listed: list[Any] | None = None
        """What the key set lists instead."""
        self.flow = SignInFlow(AUDIENCE, self.token, base64url)
        """How it signs people in who come with a browser."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                if outer.answer:
                    outer.answer(self, self.path)
                else:
                    self._lead_on(*self.path.partition("?")[::2])

            def _lead_on(self, path: str, query: str) -> None:
                place = path.rpartition("/")[2]
                lead_on = {"authorization": outer.flow.authorize, "end_session": outer.flow.end_session}.get(place)
                try:
                    if lead_on is None:
                        send(self, outer.document(path))
                    else:
                        redirect(self, lead_on(dict(parse_qsl(query))))
                except Misused as fault:
                    send(self, {"error": str(fault)}, 400)

            def do_POST(self) -> None:
                outer.asked.append(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, answer = outer.flow.exchange(dict(parse_qsl(body)))
                send(self, answer, status, outer.flow.allowed_origin(self.headers.get("Origin", "")))

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/pool"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Answer no more: the port is closed."""
        self._server.shutdown()
        self._server.server_close()

    def document(self, path: str) -> dict[str, Any]:
        """What it answers at a path."""
        if path.endswith("/.well-known/openid-configuration"):
            places = {f"{name}_endpoint": f"{self.url}/{name}" for name in ("authorization", "token", "end_session")}
            places |= {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
            return {**places, "id_token_signing_alg_values_supported": ["RS256"], **self.discovery}
        public = [public_jwk(key, key_id) for key_id, key in self.keys.items()]
        return {"keys": public if self.listed is None else self.listed}

    def claims(self, **others: Any) -> dict[str, Any]:
        """What a good token of Ada's says; None leaves a claim out."""
        now_s = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ada-1",
            "email": "ada@example.com",
            "email_verified": True,
            "iat": now_s,
            "exp": now_s + 3_600,
        }
        return {name: value for name, value in {**claims, **others}.items() if value is not None}

    def token(self, *, key_id: str = "first", header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token that it signed."""
        key = self.keys[key_id]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(self.claims(**claims), key, algorithm, headers={"kid": key_id, **(header or {})})


def send(handler: BaseHTTPRequestHandler, document: object, status: int = 200, origin: str | None = None) -> None:
    """Answer a document, which pages of the origin may read."""
    content = json.dumps(document).encode()
    handler.send_response(status)
    if origin:
        handler.send_header("Access-Control-Allow-Origin", origin)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def redirect(handler: BaseHTTPRequestHandler, location: str) -> None:
    """Send the browser on."""
    handler.send_response(302)
    handler.send_header("Location", location)
    handler.send_header("Content-Length", "0")
    handler.end_headers()
