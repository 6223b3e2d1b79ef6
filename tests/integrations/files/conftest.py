"""A server that speaks S3, of this process."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import boto3
import pytest
from moto.server import ThreadedMotoServer


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_endpoint: str, request: pytest.FixtureRequest) -> str:
    """A new bucket; its address as BOARD_STORAGE_URL has it."""
    name = f"b{abs(hash(request.node.nodeid)):x}"
    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="k", aws_secret_access_key="s", region_name="us-east-1"
    )
    client.create_bucket(Bucket=name)
    return f"s3://k:s@{name}/board?endpoint={quote(s3_endpoint, safe='')}"
