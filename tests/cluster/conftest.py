# SPDX-License-Identifier: Apache-2.0
"""Makes the tasks importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
