"""template.yaml built and packaged by SAM, deployed to an emulator of AWS."""

import os
import platform
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from botocore.config import Config

from ctrlb.adapters.aws_client import connect
from tests.aws.emulator import REGION, ROOT
from tests.template import RESOURCES

LAYER = "SharedLayer"
SAM = ROOT / ".venv-sam" / "bin"
HERE = Path(__file__).parent
NAME = "ctrlb"
BUCKET = "artifacts"
BUILD_TIMEOUT_S = 600
DEPLOY_TIMEOUT_S = 300
IMPORT_TIMEOUT_S = 120
ANSWER_TIMEOUT_S = 60
PATIENT = Config(connect_timeout=5, read_timeout=DEPLOY_TIMEOUT_S, retries={"total_max_attempts": 1})
SOME_VARIABLES = {
    **dict.fromkeys(("RELAY_TABLE", "SESSIONS_TABLE", "BODIES_BUCKET"), "name"),
    **dict.fromkeys(("DEAD_LETTER_QUEUE", "SEARCH_URL"), "https://name.invalid"),
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "none"),
}
"""What a handler looks for when it is imported; nothing is called then."""
THIS_MACHINE = {
    "Runtime": f"python3.{sys.version_info.minor}",
    "Architecture": {"aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "x86_64"),
}


class Stack:
    """The template as it stands on the emulator that the environment names."""

    def __init__(self, template: Path, parameters: dict[str, str]) -> None:
        """Package what was built and deploy it. Raises RuntimeError with what could not be made."""
        self._cloudformation = connect("cloudformation", PATIENT)
        self._create(template, parameters)
        described = self._cloudformation.describe_stacks(StackName=NAME)["Stacks"][0]
        self.outputs = {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}
        self._api = self._cloudformation.describe_stack_resource(StackName=NAME, LogicalResourceId="Api")[
            "StackResourceDetail"
        ]["PhysicalResourceId"]

    @property
    def url(self) -> str:
        """Where its API is. The emulator knows it by its path, for its host name needs a resolver that knows it too."""
        return f"{os.environ['AWS_ENDPOINT_URL']}/_aws/execute-api/{self._api}/$default"

    def routes(self) -> set[str]:
        """The keys of the routes that were made."""
        pages = connect("apigatewayv2", PATIENT).get_paginator("get_routes").paginate(ApiId=self._api)
        return {route["RouteKey"] for page in pages for route in page["Items"]}

    def allowed_origin(self, origin: str) -> str | None:
        """The origin that a browser is told may call, when a page of `origin` asks before it claims."""
        asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        request = urllib.request.Request(f"{self.url}/mcp", headers=asked, method="OPTIONS")
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:
                allowed: str | None = answer.headers["Access-Control-Allow-Origin"]
                return allowed
        except urllib.error.HTTPError:
            return None

    def _create(self, template: Path, parameters: dict[str, str]) -> None:
        s3 = connect("s3", PATIENT)
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        packaged, expanded = template.with_name("packaged.yaml"), template.with_name("expanded.json")
        to_bucket: list[str | Path] = ["--s3-bucket", BUCKET, "--output-template-file", packaged, "--no-progressbar"]
        run([SAM / "sam", "package", "--template-file", template, *to_bucket], BUILD_TIMEOUT_S)
        given = [f"{name}={value}" for name, value in parameters.items()]
        run([SAM / "python", HERE / "expand.py", packaged, expanded, *given], DEPLOY_TIMEOUT_S)
        s3.put_object(Bucket=BUCKET, Key="template", Body=expanded.read_bytes())
        self._cloudformation.create_stack(
            StackName=NAME,
            TemplateURL=f"{os.environ['AWS_ENDPOINT_URL']}/{BUCKET}/template",
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM"],
        )
        waiter = self._cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName=NAME, WaiterConfig={"Delay": 1, "MaxAttempts": DEPLOY_TIMEOUT_S})


def build(folder: Path) -> Path:
    """Build for this machine in the folder, as `make build` does. Returns the built template."""
    given = [f"{name}={value}" for name, value in THIS_MACHINE.items()]
    built: list[str | Path] = ["--build-dir", folder / "build", "--cache-dir", folder / "cache"]
    run([SAM / "sam", "build", *built, "--parameter-overrides", *given], BUILD_TIMEOUT_S)
    run([sys.executable, "infra/finish_build.py", folder / "build"], BUILD_TIMEOUT_S)
    return folder / "build" / "template.yaml"


def import_alone(build: Path) -> None:
    """Import each handler from what was built, with nothing else in reach. Raises RuntimeError when one cannot be."""
    alone = "import importlib, sys; sys.path[:0] = sys.argv[2:]; importlib.import_module(sys.argv[1]).handler"
    for name, resource in RESOURCES.items():
        if resource["Type"] == "AWS::Serverless::Function":
            module = resource["Properties"]["Handler"].partition(".")[0]
            packages = [build / name, build / LAYER / "python"]
            run([sys.executable, "-ISc", alone, module, *packages], IMPORT_TIMEOUT_S, **SOME_VARIABLES)


def expected_routes() -> set[str]:
    """The keys of the routes that the template names."""
    events: list[dict[str, Any]] = [
        event["Properties"]
        for resource in RESOURCES.values()
        if resource["Type"] == "AWS::Serverless::Function"
        for event in resource["Properties"].get("Events", {}).values()
    ]
    return {f"{event['Method']} {event['Path']}" if "Path" in event else "$default" for event in events}


def run(command: Sequence[str | Path], timeout_s: float, **variables: str) -> str:
    """What the command prints. Raises RuntimeError with it when the command fails."""
    environment = {**os.environ, **variables, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": REGION}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed:\n{done.stdout[-2_000:]}\n{done.stderr[-4_000:]}")
    return done.stdout
