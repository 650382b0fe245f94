# Every operator on numbers whose result is exact.
. "$GOLDEN/lib.sh"
run() {
    kiln run "$@" --device cpu --out y=y.npy | tail -1
    show y.npy f4
}
f32 0 0 0 0 | npy zeros.npy '<f4' '(2, 2)'
f32 1 2 3 0 | npy a.npy '<f4' '(2, 2)'
f32 inf inf inf inf | npy inf.npy '<f4' '(2, 2)'
f32 0 0 | npy bias.npy '<f4' '(2,)'
f32 inf inf 2 3 inf inf 1 0 | npy packed.npy '<f4' '(2, 4)'
run mul_add_f32 --in a=a.npy --in b=a.npy --in c=a.npy
run add_gelu_f32 --in x=zeros.npy
run add_gelu_f32 --in x=inf.npy --in bias=bias.npy --set approx=tanh
run silu_mul_f32 --in gate=zeros.npy --in up=a.npy
run silu_mul_f32 --in gate=packed.npy
