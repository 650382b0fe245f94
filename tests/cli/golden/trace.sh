# kiln trace runs as run does, and writes what happened.
. "$GOLDEN/lib.sh"
f32 0 0 | npy x.npy '<f4' '(1, 2)'
kiln trace --text softmax_f32 --device cpu --in x=x.npy --out y=y.npy |
    awk '/^ +[0-9]/ { print $4, $5, $6, $7, $NF } /^cpu/ { print $1 }'
show y.npy f4
kiln trace --out t.json softmax_f32 --device cpu --in x=x.npy --out y=y.npy
sed 's/"ts.*//' t.json | grep -o '"name":"[^"]*","cat":"[^"]*"' | sort | uniq -c | sed 's/^ *//'
# What fails in run fails here, and leaves no trace.
try kiln trace --out u.json softmax_f32 --in x=absent.npy --out y=z.npy
try kiln trace --out absent/t.json softmax_f32 --device cpu --in x=x.npy --out y=y.npy
try kiln trace --out /dev/null softmax_f32 --device cpu --in x=x.npy --out y=y.npy
ls
