"""Language models: read, quantize, write text, and tell how close the integers are to float32.

================  ===============================================================================
module            content
================  ===============================================================================
`llama2c`         importers: a file becomes a `LanguageModel`, with `gguf_file`,
                  `hugging_face` and `microgpt`
`model`           the model in float32 with its tokenizer, and its compilation
`tokenizer`       text to tokens and back
`quantization`    weights and ranges in float32 become the integers of a core
`program`         the compiled model, its checks, and the session that writes text
`agreement`       how close the integers are to float32
================  ===============================================================================
"""
