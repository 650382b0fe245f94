# Leading dimensions fold into rows and come back; arrays without elements and without dimensions.
. "$GOLDEN/lib.sh"
softmax() {
    kiln run softmax_f32 --device cpu --in x=x.npy --out y=y.npy | tail -n +2
    show y.npy f4
}
f32 1 1 1 1 2 2 2 2 | npy x.npy '<f4' '(2, 1, 4)' && softmax
f32 1 1 1 1 | npy x.npy '<f4' '(4,)' && softmax
f32 3 | npy x.npy '<f4' '()' && softmax
npy x.npy '<f4' '(0, 4)' </dev/null && softmax
npy x.npy '<f4' '(4, 0)' </dev/null && softmax
f32 -inf -inf 1 inf | npy x.npy '<f4' '(2, 2)' && softmax
# Sizes that are set are checked.
try kiln run softmax_f32 --device cpu --in x=x.npy --out y=z.npy --set rows=2 --set cols=2 | tail -n +3
try kiln run softmax_f32 --device cpu --in x=x.npy --out y=z.npy --set cols=3
try kiln run softmax_f32 --device cpu --in x=x.npy --out y=z.npy --set cols=-1
try kiln run softmax_f32 --device cpu --in x=x.npy --out y=z.npy --set cols=99999999999999999999
try kiln run softmax_f32 --device cpu --in x=x.npy --out y=z.npy --set cols=2 --set cols=2
# Sizes that an output alone has.
f32 1 2 3 3 | npy x.npy '<f4' '(2, 2)'
try kiln run quantize_fp8_f32 --device cpu --in x=x.npy --out codes=c.npy --out scales=s.npy
try kiln run quantize_fp8_f32 --device cpu --in x=x.npy --out codes=c.npy --out scales=s.npy --set scale_rows=0 --set scale_cols=1
try kiln run quantize_fp8_f32 --device cpu --in x=x.npy --out codes=c.npy --out scales=s.npy --set scale_rows=2 --set scale_cols=1 | tail -n +3
try kiln run quantize_fp8_f32 --device cpu --in x=x.npy --out codes=c.npy | tail -n +3
try kiln bench --device cpu quantize_fp8_f32 --set scale_rows=0
