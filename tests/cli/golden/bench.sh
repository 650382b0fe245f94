# The table of kiln bench, without its numbers; sizes that are set, and sizes that follow.
kiln bench --size 1 --device cpu softmax | awk '/copies/ { print $3, $4, $5, $6 } /^softmax/ { print $1, $2, $3, NF }'
kiln bench --size 2 --device cpu --set cols=100 softmax_f16 | awk '/^softmax/ { print $1, $2, $3, $NF }'
kiln bench --size 1 --device cpu --set rows=3 --set cols=7 softmax_f32 | awk '/^softmax/ { print $1, $2, $3, $(NF - 1), $NF }'
kiln bench --size 1 --device cpu --set cols=9223372036854775807 softmax_f32
echo "exit $?"
