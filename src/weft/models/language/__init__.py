"""Language models: quantize a model in float32, and tell how close the integers are.

================  ===============================================================================
module            content
================  ===============================================================================
`quantization`    weights and ranges in float32 become the integers of a core
================  ===============================================================================
"""
