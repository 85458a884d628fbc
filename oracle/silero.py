"""Vectors for the corpus' voice activity models: python oracle/silero.py MLMODELC_DIR   (the corpus' folder `mlmodelc`)

Needs `pip install silero-vad==6.0.0 onnx onnxruntime numpy` (that version: the corpus was converted from its weights) and espeak-ng.
Writes to tests/golden:

    silero.wave.i16le    speech and pauses, 16 kHz, one channel
    silero.fp16.f32le    for silero-vad-unified-v6.0.0: the probability of each frame, then h and c (128 each) after the last
    silero.int8.f32le    for unified_int8: the same, from the same network with that file's decoded weights

Both come from the package's ONNX file, in fp32, by onnxruntime. Frames have 512 samples; 64 of the frame before stand in front.
"""

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import wave

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
ONNX = pathlib.Path(importlib.util.find_spec("silero_vad").origin).parent / "data" / "silero_vad_16k_op15.onnx"
FRAME, CONTEXT, FRAMES, RATE = 512, 64, 60, 16000


def speech():
    """Two words between pauses, resampled to 16 kHz, with a little noise."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["espeak-ng", "-v", "en", "-s", "150", "-w", file.name, "anneal, slowly"], check=True)
        with wave.open(file.name) as w:
            rate = w.getframerate()
            sound = np.frombuffer(w.readframes(w.getnframes()), np.int16) / 32768
    count = FRAME * FRAMES
    at = np.arange(count) * rate / RATE
    lead = 6 * FRAME * rate / RATE
    x = np.interp(at - lead, np.arange(len(sound)), sound, left=0, right=0)
    x += np.random.default_rng(0).standard_normal(count) * 1e-3
    return np.round(np.clip(x * 0.8, -1, 1) * 32767).astype("<i2")


def run(model, samples):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    state, before, out = np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32), []
    for frame in (samples.astype(np.float32) / 32768).reshape(FRAMES, FRAME):
        x = np.concatenate([before, frame])[None]
        p, state = session.run(None, {"input": x, "state": state, "sr": np.array(RATE, np.int64)})
        before = frame[-CONTEXT:]
        out.append(p.item())
    return np.concatenate([np.array(out, np.float32), state[:, 0].ravel()]).astype("<f4")


class Weights:
    """Constants of a compiled model, by the name in its text."""

    def __init__(self, directory):
        self.text = (directory / "model.mil").read_text()
        self.file = (directory / "weights" / "weight.bin").read_bytes()

    def blob(self, kind, shape, offset):
        start = int.from_bytes(self.file[offset + 16 : offset + 24], "little")
        dtype = {"fp16": "<f2", "fp32": "<f4", "int8": "i1"}[kind]
        dims = [int(n) for n in shape.split(",")]
        return np.frombuffer(self.file, dtype, int(np.prod(dims)), start).reshape(dims).astype(np.float64)

    def __getitem__(self, name):
        line = re.search(rf"> {name}(?:_quantized)? = (.*)", self.text)[1]
        blob = r"{} = tensor<(\w+), \[([\d, ]+)\]>\(BLOBFILE\(path = [^)]*\), offset = [^(]*\((\d+)\)"
        part = lambda key: (m := re.search(blob.format(key), line)) and self.blob(m[1], m[2], int(m[3]))
        if (value := part("val")) is not None:
            return value
        data, scale, zero = part("quantized_data"), part("scale"), part("zero_point")
        along = (-1,) + (1,) * (data.ndim - 1)
        return (data - zero.reshape(along)) * scale.reshape(along)


def with_weights(model, weights):
    """The same network with the constants of a compiled model."""
    swap = lambda w: w.reshape((4, 128) + w.shape[1:])[[0, 1, 3, 2]].reshape(w.shape)  # MIL: i f o g, ONNX file: i f g o
    values = {"model.stft.forward_basis_buffer": weights["stft_forward_basis_to_fp16"]}
    for n in range(4):
        for kind in ("weight", "bias"):
            values[f"model.encoder.{n}.reparam_conv.{kind}"] = weights[f"encoder_layers_{2 * n}_{kind}_to_fp16"]
    values["model.decoder.rnn.weight_ih"] = swap(weights["concat_1"])
    values["model.decoder.rnn.weight_hh"] = swap(weights["concat_2"])
    values["model.decoder.rnn.bias_ih"] = swap(weights["concat_0"])
    values["model.decoder.rnn.bias_hh"] = np.zeros(512)
    values["model.decoder.decoder.2.weight"] = weights["decoder_final_conv_weight_to_fp16"]
    replaced = set()

    def visit(graph):
        for t in graph.initializer:
            if t.name in values:
                t.CopyFrom(numpy_helper.from_array(values[t.name].astype(np.float32), t.name))
                replaced.add(t.name)
        for node in graph.node:
            for a in node.attribute:
                if a.name == "value" and node.op_type == "Constant" and node.output[0] in values:
                    a.t.CopyFrom(numpy_helper.from_array(values[node.output[0]].astype(np.float32), a.t.name))
                    replaced.add(node.output[0])
                if a.type == onnx.AttributeProto.GRAPH:
                    visit(a.g)

    visit(model.graph)
    assert replaced == set(values), set(values) - replaced
    return model


def main():
    corpus = pathlib.Path(sys.argv[1])
    samples = speech()
    plain = run(onnx.load(ONNX), samples)
    own = run(with_weights(onnx.load(ONNX), Weights(corpus / "silero-vad-unified-v6.0.0")), samples)
    small = run(with_weights(onnx.load(ONNX), Weights(corpus / "unified_int8")), samples)
    print("the fp16 weights change a probability by at most", np.abs(plain - own)[:FRAMES].max())
    print("the int8 weights change a probability by at most", np.abs(plain - small)[:FRAMES].max())
    print("probabilities", np.round(plain[:FRAMES], 3).tolist())
    samples.tofile(GOLDEN / "silero.wave.i16le")
    plain.tofile(GOLDEN / "silero.fp16.f32le")
    small.tofile(GOLDEN / "silero.int8.f32le")


if __name__ == "__main__":
    main()
