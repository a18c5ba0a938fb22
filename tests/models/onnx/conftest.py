"""The packages that tests of ONNX files need."""

import pytest
from onnx_models import require


@pytest.fixture
def onnxruntime():
    """Skips the test if ONNX or onnxruntime is not installed."""
    require("onnx", "onnxruntime")
