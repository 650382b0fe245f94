# Unknown words, missing and surplus arguments: one line, exit 2, the nearest name if one is near.
. "$GOLDEN/lib.sh"
try kiln verfy
try kiln nothing-like-it
try kiln --jsn
try kiln help verfy
try kiln help run trace
try kiln info surplus
try kiln info --jsn
try kiln info -x
try kiln info --json=1
try kiln info --json --chekc
try kiln images --target
try kiln images softmx
try kiln images softmax_f16
try kiln images softmax add_gelu
try kiln verify softmx
try kiln explain softmx
try kiln run
try kiln run softmax_f32 softmax_f16
try kiln run softmax_f31
try kiln run --help softmax_f31
try kiln run --device
try kiln explain --device tpu
try kiln explain --device cuda:x
try kiln explain --device cuda:99999
try kiln trace
try kiln trace --text
try kiln trace --txt softmax_f32
try kiln bench softmx
try kiln bench --size 0
try kiln bench --size 1x
try kiln bench --set rows
try kiln bench softmax --set approx=tanh
