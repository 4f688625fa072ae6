"""A packaged SAM template as plain CloudFormation that the emulator understands.

SAM describes the API in an OpenAPI body, which the emulator takes and ignores: here it is made of Route and Integration
resources. It does not tell functions a stage's variables: here they are in their environments. Alarms that add metrics
up, which the emulator refuses, are left out. Run by the Python of the environment
that has SAM: `expand.py packaged.yaml expanded.json Name=value …`, with the template's parameters that are not default.
"""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

ANY = "x-amazon-apigateway-any-method"
CORS = "x-amazon-apigateway-cors"

Json = dict[str, Any]


def expand(template: Json) -> Json:
    """The template with a resource for each route of its API."""
    resources: Json = template["Resources"]
    for name, resource in list(resources.items()):
        if resource["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in resource["Properties"]:
            del resources[name]
        if resource["Type"] == "AWS::ApiGatewayV2::Api":
            properties = resource["Properties"]
            body = properties.pop("Body")
            del properties["FailOnWarnings"]  # of the body
            properties |= {"Name": name, "ProtocolType": "HTTP", "CorsConfiguration": body[CORS]}
            resources.update(_routes(name, body["paths"]))
        if resource["Type"] == "AWS::ApiGatewayV2::Stage":
            _tell_functions(resources, resource["Properties"]["StageVariables"])
    return template


def _tell_functions(resources: Json, variables: Json) -> None:
    for resource in resources.values():
        if resource["Type"] == "AWS::Lambda::Function":
            resource["Properties"]["Environment"]["Variables"] |= variables


def _routes(api: str, paths: Json) -> Json:
    found: Json = {}
    for path, methods in paths.items():
        for method, operation in methods.items():
            verb = "ANY" if method == ANY else method.upper()
            key = "$default" if path == "/$default" else f"{verb} {path}"
            name = f"{api}{re.sub(r'[^A-Za-z]', '', key.title().replace('/', 'Slash'))}"
            integration = operation["x-amazon-apigateway-integration"]
            found[f"{name}Integration"] = {
                "Type": "AWS::ApiGatewayV2::Integration",
                "Properties": {
                    "ApiId": {"Ref": api},
                    "IntegrationType": integration["type"].upper(),
                    "IntegrationUri": integration["uri"],
                    "IntegrationMethod": integration["httpMethod"],
                    "PayloadFormatVersion": integration["payloadFormatVersion"],
                },
            }
            found[f"{name}Route"] = {
                "Type": "AWS::ApiGatewayV2::Route",
                "Properties": {
                    "ApiId": {"Ref": api},
                    "RouteKey": key,
                    "Target": {"Fn::Sub": f"integrations/${{{name}Integration}}"},
                },
            }
    return found


def main() -> None:
    """Read the packaged template, write the expanded one."""
    source, target, *assignments = sys.argv[1:]
    parameters = dict(each.split("=", 1) for each in assignments)
    no_managed_policies = SimpleNamespace(load=dict)
    plain = transform(yaml_parse(Path(source).read_text()), parameters, no_managed_policies)
    Path(target).write_text(json.dumps(expand(plain)))


if __name__ == "__main__":
    main()
