# kiln run: a softmax of two rows, and where it ran.
. "$GOLDEN/lib.sh"
f32 0 0 3 3 | npy x.npy '<f4' '(2, 2)'
kiln run softmax_f32 --in x=x.npy --out y=y.npy --device cpu | sed 's/(.*)/(level)/'
show y.npy f4
ls
# An output may replace the input's file.
kiln run softmax_f32 --device cpu --in x=x.npy --out y=x.npy | tail -1
cmp x.npy y.npy && stat -c '%a %n' x.npy
