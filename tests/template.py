"""template.yaml as tests read it."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms too: `!Ref Api` as {"Ref": "Api"}, `!GetAtt A.Arn` as {"GetAtt": "A.Arn"}."""


def _short_form(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    assert isinstance(node, yaml.SequenceNode)
    return {name: loader.construct_sequence(node, deep=True)}


_Loader.add_multi_constructor("!", _short_form)

TEMPLATE: dict[str, Any] = yaml.load((ROOT / "template.yaml").read_text("utf-8"), _Loader)
RESOURCES: dict[str, dict[str, Any]] = TEMPLATE["Resources"]
