"""The JavaScript that docs/webhooks.md gives to users of n8n's Code node, run by Node on a call of ours."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from board.effects import signing

PAGE = Path(__file__).parents[2] / "docs" / "webhooks.md"
SECRETS = ["whsec_c29tZSBieXRlcyBvZiBhIHNlY3JldA==", "a plain text, 秘密"]
# What n8n gives to a Code node: the item, and a function for its binary field.
HARNESS = """
const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const $input = {first: () => ({json: {headers: given.headers}})};
const self = {helpers: {getBinaryDataBuffer: async () => Buffer.from(given.body, 'base64')}};
(async function () {%s}).call(self).then((items) => console.log(items.length), (error) => console.log(error.message));
"""


def run(secret: str, headers: dict[str, str], body: bytes) -> str:
    import base64

    found = re.search(r"```js\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    code = HARNESS % found[1].replace("'whsec_…'", json.dumps(secret))
    given = json.dumps({"headers": headers, "body": base64.b64encode(body).decode()})
    done = subprocess.run(["node", "-e", code], input=given, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
@pytest.mark.parametrize("secret", SECRETS)
def test_the_code_node_of_the_docs(secret: str) -> None:
    body = '{"event": "task.done", "名": "x"}'.encode()
    good = signing.headers("callback:T-1:7", body, ["whsec_bmV3", secret])
    refused = "This call does not come from the board."
    assert run(secret, good, body) == "1"
    assert run(secret, good, body[:-1] + b" ") == refused
    assert run("whsec_b3RoZXI=", good, body) == refused
    assert run(secret, signing.headers("callback:T-1:7", body, [secret], int(time.time()) - 400), body) == refused
