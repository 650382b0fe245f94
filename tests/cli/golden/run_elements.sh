# bf16 is written as it was read: ml_dtypes' V2 or the bits as uint16. f16, and the wrong element types.
. "$GOLDEN/lib.sh"
printf '\x80\x3f\x80\x3f' >ones
npy v2.npy '<V2' '(2,)' <ones
npy u2.npy '<u2' '(2,)' <ones
npy name.npy 'bfloat16' '(2,)' <ones
for file in v2 u2 name; do
    kiln run softmax_bf16 --device cpu --in "x=$file.npy" --out y=y.npy | tail -1
    show y.npy x2
done
npy half.npy '<f2' '(2,)' <ones
kiln run softmax_f16 --device cpu --in x=half.npy --out y=y.npy | tail -1
show y.npy x2
try kiln run softmax_f16 --in x=u2.npy --out y=z.npy
try kiln run softmax_f32 --in x=half.npy --out y=z.npy
try kiln run softmax_bf16 --in x=half.npy --out y=z.npy
