"""Serves until it is ended."""

from __future__ import annotations

import sys

from tffc.deploy.operations.endpoint import EndpointSettings, open_endpoint
from tffc.support.errors import TffcError


def main() -> None:
    """Serve as the environment says."""
    try:
        endpoint = open_endpoint(EndpointSettings.from_environment())
    except TffcError as error:
        sys.exit(str(error))
    endpoint.serve_forever()


if __name__ == "__main__":
    main()
