# Names and shapes that do not fit, and outputs that cannot be written: one line, exit 2, no output file.
. "$GOLDEN/lib.sh"
f32 1 2 3 1 | npy x.npy '<f4' '(2, 2)'
f32 1 2 3 | npy three.npy '<f4' '(3,)'
f32 1 2 3 1 | npy tall.npy '<f4' '(4, 1)'
mkdir folder
try kiln run softmax
try kiln run softmax_f32
try kiln run softmax_f32 --in x=x.npy
try kiln run softmax_f32 --out y=y.npy
try kiln run softmax_f32 --in x --out y=y.npy
try kiln run softmax_f32 --in =x.npy --out y=y.npy
try kiln run softmax_f32 --in z=x.npy --out y=y.npy
try kiln run softmax_f32 --in y=x.npy --out y=y.npy
try kiln run softmax_f32 --in x=x.npy --out x=y.npy
try kiln run softmax_f32 --in x=x.npy --in x=x.npy --out y=y.npy
try kiln run softmax_f32 --in x=x.npy --out y=y.npy --out y=z.npy
try kiln run softmax_f32 --in x=x.npy --out y=y.npy --set x_stride=2
try kiln run softmax_f32 --in x=x.npy --out y=y.npy --set approx=tanh
try kiln run add_gelu_f32 --in x=x.npy --in bias=three.npy --out y=y.npy
try kiln run add_gelu_f32 --in x=x.npy --out y=y.npy --set approx=sigmoid
try kiln run rmsnorm_f32 --device cpu --in x=x.npy --out y=y.npy --set eps=-1
try kiln run mul_add_f32 --in a=x.npy --in b=tall.npy --in c=x.npy --out y=y.npy
try kiln run silu_mul_f32 --in gate=three.npy --out y=y.npy
try kiln run softmax_f32 --device cpu --in x=x.npy --out y=folder
try kiln run softmax_f32 --device cpu --in x=x.npy --out y=/dev/null
try kiln run softmax_f32 --device cpu --in x=x.npy --out y=absent/y.npy
try kiln run softmax_f32 --device cpu:1 --in x=x.npy --out y=y.npy
# No trace takes the place of an input or an output.
try kiln trace --out x.npy softmax_f32 --device cpu --in x=x.npy --out y=y.npy
try kiln trace --out y.npy softmax_f32 --device cpu --in x=x.npy --out y=y.npy
# A file that may not grow that far: nothing of it is left.
(ulimit -f 0 && trap '' PIPE && try kiln run softmax_f32 --device cpu --in x=x.npy --out y=y.npy) | cat
ls
