"""python -m kiln.convert IN OUT."""
import argparse
import sys

from kiln.convert import convert
from kiln.convert._weights import DTYPES, LAYOUTS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kiln.convert", description="Converts 4-bit weights of AWQ, GPTQ or GGUF for kiln's gemm_w4a16.")
    parser.add_argument("source", metavar="IN", help="a folder or a .safetensors file of AWQ or GPTQ, or a .gguf file")
    parser.add_argument("target", metavar="OUT", help="the safetensors file to write")
    parser.add_argument("--dtype", choices=DTYPES, default="f16", help="of scales and zeros; f16 by default")
    parser.add_argument("--layout", choices=LAYOUTS, default="canonical", help="of the weights; canonical by default")
    parser.add_argument("--dequantize", action="store_true",
                        help="make tensors of other GGUF types --dtype instead of refusing them")
    given = parser.parse_args()
    try:
        print(convert(given.source, given.target, given.dtype, given.layout, given.dequantize))
    except (ImportError, OSError, ValueError) as error:
        print(f"kiln.convert: {error}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
