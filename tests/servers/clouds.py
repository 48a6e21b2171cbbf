"""Claude in the clouds of others, played to the program as Amazon's and Google's own libraries understand it: requests are
verified with botocore and google-auth, frames with botocore. Usage: clouds.py PROGRAM ROOM"""

import base64
import datetime
import json
import os
import pathlib
import struct
import subprocess
import sys
import threading
import urllib.parse
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.eventstream import EventStreamBuffer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt

PROGRAM, ROOM = sys.argv[1], pathlib.Path(sys.argv[2])
# Access keys and what they sign with: the person's own, the container's, and those that the token service gives.
KEYS = {"AKIDOWN": ("own secret/+", None), "AKIDBOX": ("box secret", "box token"), "AKIDSTS": ("sts secret", "sts token")}
ANSWER = "Hello from the cloud"
rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
public = rsa_key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
seen, wrong = [], []


def events():
    yield {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
           "model": "claude", "usage": {"input_tokens": 9, "output_tokens": 1}}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for word in ANSWER.split(" "):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word + " "}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def frame(headers, payload):
    head = b"".join(struct.pack("B", len(k)) + k.encode() + b"\x07" + struct.pack(">H", len(v)) + v.encode()
                    for k, v in headers.items())
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack(">I", zlib.crc32(body))


def frames():
    chunk = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    written = b"".join(frame(chunk, json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abcd"}).encode())
                       for event in events())
    buffer = EventStreamBuffer()
    buffer.add_data(written)
    assert len(list(buffer)) == len(list(events())), "botocore reads the frames"
    return written


def check_signature(handler, body, service):
    authorization = handler.headers["Authorization"] or ""
    access = authorization.partition("Credential=")[2].partition("/")[0]
    secret, token = KEYS[access]
    region = authorization.split("/")[2]
    url = f"http://{handler.headers['Host']}{handler.path}"
    request = AWSRequest(method="POST", url=url, data=body)
    request.context["timestamp"] = handler.headers["X-Amz-Date"]
    request.headers["X-Amz-Date"] = handler.headers["X-Amz-Date"]
    if token:
        request.headers["X-Amz-Security-Token"] = handler.headers["X-Amz-Security-Token"]
    auth = SigV4Auth(Credentials(access, secret, token), service, region)
    expected = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    if not authorization.endswith(f"Signature={expected}") or handler.headers["X-Amz-Security-Token"] != token:
        wrong.append(f"signature of {access} at {handler.path}: {authorization}")
    return access


class Cloud(BaseHTTPRequestHandler):
    def answer(self, body, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

    def do_GET(self):
        later = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        if self.path == "/box" and self.headers["Authorization"] == "box pass":
            keys = {"AccessKeyId": "AKIDBOX", "SecretAccessKey": "box secret", "Token": "box token", "Expiration": later}
            self.answer(json.dumps(keys).encode(), "application/json")
        elif self.path.startswith("/computeMetadata/") and self.headers["Metadata-Flavor"] == "Google":
            self.answer(json.dumps({"access_token": "ya-machine", "expires_in": 3000}).encode(), "application/json")
        else:
            self.answer(b"{}", "application/json", 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = urllib.parse.unquote(self.path)
        if path.startswith("/model/") and path.endswith("/invoke-with-response-stream"):
            request = json.loads(body)
            if request.get("anthropic_version") != "bedrock-2023-05-31" or "model" in request or "stream" in request:
                wrong.append(f"body: {request}")
            bearer = self.headers["Authorization"].startswith("Bearer ")
            seen.append(self.headers["Authorization"] if bearer else check_signature(self, body, "bedrock"))
            self.answer(frames(), "application/vnd.amazon.eventstream")
        elif path == "/sts":
            form = dict(urllib.parse.parse_qsl(body.decode()))
            if form["Action"] == "AssumeRole":
                seen.append(check_signature(self, body, "sts"))
            elif form["WebIdentityToken"] != "an identity":
                wrong.append(f"identity: {form}")
            later = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
            self.answer(f"<R><Credentials><AccessKeyId>AKIDSTS</AccessKeyId><SecretAccessKey>sts secret</SecretAccessKey>"
                        f"<SessionToken>sts token</SessionToken><Expiration>{later}</Expiration></Credentials></R>".encode(), "text/xml")
        elif path == "/token":
            form = dict(urllib.parse.parse_qsl(body.decode()))
            if form["grant_type"] == "refresh_token":
                token = "ya-person" if form["refresh_token"] == "a refresh" else ""
            else:
                claims = jwt.decode(form["assertion"], certs=public, audience=f"http://{self.headers['Host']}/token")
                token = "ya-service" if claims["iss"] == "agent@p.example" and "cloud-platform" in claims["scope"] else ""
            self.answer(json.dumps({"access_token": token, "expires_in": 3599, "token_type": "Bearer"}).encode(), "application/json")
        elif path.endswith(":streamRawPredict"):
            request = json.loads(body)
            if request.get("anthropic_version") != "vertex-2023-10-16" or "model" in request or not request["stream"]:
                wrong.append(f"body: {request}")
            seen.append(self.headers["Authorization"])
            lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events())
            self.answer(lines.encode(), "text/event-stream")
        else:
            wrong.append(f"asked for {path}")
            self.answer(b'{"message":"no"}', "application/json", 404)


server = ThreadingHTTPServer(("127.0.0.1", 0), Cloud)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"


def ask(name, model, env, expected):
    home = ROOM / name
    models = home / ".config/agent/models"
    models.mkdir(parents=True, exist_ok=True)
    (models / "cloud.yaml").write_text(model)
    seen.clear()
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), **env(home)}
    run = subprocess.run([PROGRAM, "run", "-q", "-m", "cloud", "hi"], cwd=home, env=clean, capture_output=True, text=True,
                         stdin=subprocess.DEVNULL, timeout=60)
    text = run.stdout + run.stderr
    secret = next((secret for secret, _ in KEYS.values() if secret in text), None)
    if run.returncode != 0 or run.stdout.strip() != ANSWER or seen != expected or wrong or secret:
        sys.exit(f"FAILED: {name}: {run.returncode} {text!r} {seen} {wrong} {secret}")
    print(f"passed: {name}")


def bedrock(key):
    return f"provider: openai\nbase_url: {address}\ndialect: bedrock\nmodel: eu.anthropic.claude-opus-5-v1:0\napi_key: {key}\n"


def vertex(key):
    return (f"provider: openai\nbase_url: {address}/v1/projects/p/locations/l\ndialect: vertex\nmodel: claude-opus-5@20260901\n"
            f"api_key: {key}\n")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def profiles(home):
    write(home / ".aws/credentials", "[work]\naws_access_key_id = AKIDOWN\naws_secret_access_key = own secret/+\n")
    keys = json.dumps({"Version": 1, "AccessKeyId": "AKIDBOX", "SecretAccessKey": "box secret", "SessionToken": "box token"})
    write(home / "keys.json", keys)
    write(home / ".aws/config", "[profile work]\nregion = eu-west-1\n[profile other]\nrole_arn = arn:aws:iam::1:role/r\n"
          f"source_profile = work\n[profile printed]\ncredential_process = cat {home}/keys.json\n")
    return {"AWS_ENDPOINT_URL_STS": f"{address}/sts"}


def service_account(home):
    pem = rsa_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    account = {"type": "service_account", "client_email": "agent@p.example", "private_key": pem.decode(), "private_key_id": "1",
               "token_uri": f"{address}/token"}
    return {"GOOGLE_APPLICATION_CREDENTIALS": write(home / "account.json", json.dumps(account))}


def person(home):
    account = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "a refresh", "token_uri": f"{address}/token"}
    write(home / ".config/gcloud/application_default_credentials.json", json.dumps(account))
    return {}


ask("bedrock-api-key", bedrock("a-key"), lambda _: {}, ["Bearer a-key"])
own = {"AWS_ACCESS_KEY_ID": "AKIDOWN", "AWS_SECRET_ACCESS_KEY": "own secret/+", "AWS_REGION": "eu-central-1"}
ask("bedrock-environment", bedrock("{ aws: default }"), lambda _: own, ["AKIDOWN"])
ask("bedrock-profile", bedrock("{ aws: work }"), profiles, ["AKIDOWN"])
ask("bedrock-role-of-profile", bedrock("{ aws: other }"), profiles, ["AKIDOWN", "AKIDSTS"])
ask("bedrock-credential-process", bedrock("{ aws: printed }"), profiles, ["AKIDBOX"])
ask("bedrock-web-identity", bedrock("{ aws: default }"),
    lambda home: {"AWS_WEB_IDENTITY_TOKEN_FILE": write(home / "token", "an identity\n"), "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
                  "AWS_ENDPOINT_URL_STS": f"{address}/sts"}, ["AKIDSTS"])
ask("bedrock-container", bedrock("{ aws: default }"),
    lambda _: {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{address}/box", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "box pass"}, ["AKIDBOX"])
ask("vertex-service-account", vertex("{ google: default }"), service_account, ["Bearer ya-service"])
ask("vertex-person", vertex("{ google: default }"), person, ["Bearer ya-person"])
ask("vertex-machine", vertex("{ google: default }"), lambda _: {"GCE_METADATA_HOST": address.removeprefix("http://")}, ["Bearer ya-machine"])
