#!/bin/bash
# Packs what `make check-gpu` and `make bench-gpu` run, as it was built, and the bench of a model and the tuning of kernels, for
# a machine with a GPU and without compilers: BUILD/kiln-gpu.tar.xz, with the scripts check-gpu, bench-gpu, bench-graphs,
# bench-llama and tune-gpu in it. The processor and the C library must be such as
# here or newer. docs/real-gpu.md
#   gpu_package.sh BUILD MODEL_DIR
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 models=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=$work/kiln-gpu
mkdir -p "$package"/{build,lib,models}

# What is under the build's folder is under build there, without symbols.
(cd "$build" && cp --parents kiln tests/run examples/llama bench/gpu_copy tests/ops/*_test tests/ops-ptx/*_test tests/sim/tests/ptx/*_test "$package/build")
find "$package/build" -type f -exec strip {} +
cp "$build/libkiln.so.0" "$package/build"
cp -r "$build/tuning" "$package/build" 2>/dev/null || echo "gpu_package: no tiles for tuning: make tuning-images" >&2
cp -r --parents loader/bindings/python/kiln "$package"
cp "$build"/python/*.so "$package/loader/bindings/python/kiln" 2>/dev/null || true # fast calls, where Python's headers are
cp --parents tests/tap.sh tests/gpu/* tests/sim/tests/operators/operators.sh scripts/{check_gpu,story}.sh \
    scripts/bench_{gpu,torch,graphs,cases,llama_torch}.py scripts/{gpu_report,llama_shapes,tune_gpu}.py docs/examples/llama/{story.txt,bench_shapes.def} "$package"
cp "$models"/{stories260K.bin,tok512.bin} "$package/models" 2>/dev/null || echo "gpu_package: no model in $models: no story" >&2

for library in libcmocka.so.0 libmpfr.so.6 libgmp.so.10; do
    path=$(ldconfig -p | sed -n "s|.*$library (libc6.*) => ||p" | head -n 1)
    [ -z "$path" ] || cp "$path" "$package/lib"
done
git describe --always --dirty >"$package/version" 2>/dev/null || true

cat >"$package/check-gpu" <<'END'
#!/bin/bash
# scripts/check_gpu.sh with its options, at most nine minutes; again, it goes on: ./check-gpu, or ./check-gpu instructions operators
cd "$(dirname "$0")" || exit 1
export MODEL_DIR=$PWD/models LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec scripts/check_gpu.sh build "$@"
END
cat >"$package/bench-gpu" <<'END'
#!/bin/bash
# scripts/bench_gpu.py with its options, at most nine minutes; again, it goes on: ./bench-gpu --device cuda:0 --out h200.json
cd "$(dirname "$0")" && exec python3 scripts/bench_gpu.py build "$@"
END
cat >"$package/bench-graphs" <<'END'
#!/bin/bash
# scripts/bench_graphs.py with its options, at most nine minutes; again, it goes on: ./bench-graphs --out graphs.json
cd "$(dirname "$0")" || exit 1
export PYTHONPATH=$PWD/loader/bindings/python KILN_LIBRARY=$PWD/build/libkiln.so.0
exec python3 scripts/bench_graphs.py "$@"
END
cat >"$package/bench-llama" <<'END'
#!/bin/bash
# A model of random weights, beside the same in PyTorch where python3 has it: ./bench-llama --shape llama3-8b --batch 1,16,64 --out
# llama.json (scripts/bench_llama_torch.py has the options), at most nine minutes; again, it goes on. With --kiln-alone those of build/examples/llama --bench.
cd "$(dirname "$0")" || exit 1
if [ "${1:-}" = --kiln-alone ]; then
    shift
    exec build/examples/llama --bench "$@"
fi
exec python3 scripts/bench_llama_torch.py --llama build/examples/llama "$@"
END
cat >"$package/tune-gpu" <<'END'
#!/bin/bash
# scripts/tune_gpu.py with its options, at most nine minutes; again, it goes on: ./tune-gpu --device cuda:0 --out tune.json
cd "$(dirname "$0")" && exec python3 scripts/tune_gpu.py build "$@"
END
chmod +x "$package"/{check,bench,tune}-gpu "$package"/bench-{graphs,llama}

XZ_OPT='-T1 -3 --lzma2=preset=3,dict=64MiB' tar -C "$work" -cJf "$build/kiln-gpu.tar.xz" kiln-gpu
echo "$build/kiln-gpu.tar.xz: $(du -h "$build/kiln-gpu.tar.xz" | cut -f1)"
