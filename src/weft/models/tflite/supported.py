"""The operators that TFLite Micro's package can run.

Source: TFLite Micro, ``python_ops_resolver.cc``.
"""

__all__ = ["CALLERS", "COMPILED", "CUSTOM", "RUNTIME"]

# Operators that call subgraphs or keep resources: they need the whole file.
CALLERS = frozenset({
    "ASSIGN_VARIABLE", "CALL_ONCE", "IF", "READ_VARIABLE", "VAR_HANDLE", "WHILE",
})
RUNTIME = CALLERS | {
    "ABS", "ADD", "ADD_N", "ARG_MAX", "ARG_MIN", "AVERAGE_POOL_2D", "BATCH_MATMUL",
    "BATCH_TO_SPACE_ND", "BROADCAST_ARGS", "BROADCAST_TO", "CAST", "CEIL", "CONCATENATION",
    "CONV_2D", "COS", "CUMSUM", "DEPTH_TO_SPACE", "DEPTHWISE_CONV_2D", "DEQUANTIZE", "DIV",
    "DYNAMIC_UPDATE_SLICE", "ELU", "EMBEDDING_LOOKUP", "EQUAL", "EXP", "EXPAND_DIMS", "FILL",
    "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "FULLY_CONNECTED", "GATHER", "GATHER_ND", "GREATER",
    "GREATER_EQUAL", "HARD_SWISH", "L2_NORMALIZATION", "L2_POOL_2D", "LEAKY_RELU", "LESS",
    "LESS_EQUAL", "LOG", "LOG_SOFTMAX", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC",
    "MAX_POOL_2D", "MAXIMUM", "MEAN", "MINIMUM", "MIRROR_PAD", "MUL", "NEG", "NOT_EQUAL", "PACK",
    "PAD", "PADV2", "PRELU", "QUANTIZE", "REDUCE_ALL", "REDUCE_MAX",
    "REDUCE_MIN", "RELU", "RELU6", "RESHAPE",
    "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "ROUND", "RSQRT", "SELECT_V2",
    "SHAPE", "SIN", "SLICE", "SOFTMAX", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT",
    "SPLIT_V", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SQUEEZE", "STRIDED_SLICE", "SUB", "SUM",
    "SVDF", "TANH", "TRANSPOSE", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNPACK",
    "ZEROS_LIKE",
}
# Custom operators of its package.
CUSTOM = (
    "CIRCULAR_BUFFER", "SignalDelay", "SignalEnergy", "SignalFftAutoScale", "SignalFilterBank",
    "SignalFilterBankLog", "SignalFilterBankSpectralSubtraction", "SignalFilterBankSquareRoot",
    "SignalFramer", "SignalIrfft", "SignalOverlapAdd", "SignalPCAN", "SignalRfft",
    "SignalStacker", "SignalWindow", "TFLite_Detection_PostProcess",
)
# Custom operators that the compilers of other accelerators write, by what runs them.
COMPILED = {
    "edgetpu-custom-op": "a Coral Edge TPU (by edgetpu_compiler)",
    "ethos-u": "an Arm Ethos-U (by Vela)",
    "neutron_graph": "an NXP eIQ Neutron (by its converter)", "NeutronGraph": "an NXP eIQ Neutron",
}
