# SPDX-License-Identifier: Apache-2.0
"""A process that times statements on request, one line of JSON each way."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Worker:
    """Begins with a line about itself; then answers [statement, count] with a number."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.about = self.read()

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a worker died; its message is above")
        return json.loads(line)

    def time(self, statement: str, count: int) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([statement, count]) + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
