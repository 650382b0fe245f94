# Names with escape sequences do not reach the terminal.
. "$GOLDEN/lib.sh"
red=$'\033[31mred\n'
try kiln "$red" | tail -n +3
try kiln "--$red" | tail -n +3
try kiln images "$red" | tail -n +3
try kiln info "--$red" | tail -n +3
try kiln explain --target "$red" | tail -n +3 | sed 's/ is not known.*//'
try kiln run "$red" | tail -n +3
try kiln run softmax_f32 --in "x=$red" --out y=y.npy | tail -n +3
try kiln run softmax_f32 --set "$red=$red" | tail -n +3
f32 1 | npy bad.npy $'\033[31m' '(1,)'
try kiln run softmax_f32 --in x=bad.npy --out y=y.npy
f32 1 | npy x.npy '<f4' '(1,)'
kiln run softmax_f32 --device cpu --in x=x.npy --out "y=$red" | tail -1
