"""Writes a GGUF file again with its matrices quantised: ggml_quantise.py SOURCE TARGET TYPE. Needs the gguf package."""
import sys

import gguf

BLOCK = 32

source, target, name = sys.argv[1:]
kind = gguf.GGMLQuantizationType[name]
reader = gguf.GGUFReader(source)
writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
for key, field in reader.fields.items():
    if key == "general.architecture" or key.startswith("GGUF."):
        continue  # written by itself
    if field.types[0] == gguf.GGUFValueType.ARRAY:
        writer.add_array(key, field.contents())
    else:
        writer.add_key_value(key, field.contents(), field.types[0])
for tensor in reader.tensors:
    if len(tensor.shape) == 2 and tensor.shape[0] % BLOCK == 0:
        writer.add_tensor(tensor.name, gguf.quantize(tensor.data, kind), raw_dtype=kind)
    else:
        writer.add_tensor(tensor.name, tensor.data)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
