# The table of kiln bench, without its numbers; sizes that are set, and sizes that follow.
kiln bench --size 1 --time 1 --device cpu softmax | awk '/copies/ { print $3, $4, $5, $6 } /^softmax/ { print $1, $2, $3, NF }'
kiln bench --size 2 --time 1 --device cpu --set cols=100 softmax_f16 | awk '/^softmax/ { print $1, $2, $3, $NF }'
kiln bench --size 1 --time 1 --device cpu --set rows=3 --set cols=7 softmax_f32 | awk '/^softmax/ { print $1, $2, $3, $(NF - 1), $NF }'
# Scales follow the rows and columns that they are of, as their layout has them; without --set rows too.
for size in 'rows=1000 --set cols=1000' 'rows=1000 --set cols=1000 --set scale_layout=128x4' 'cols=1024' 'rows=8 --set scale_rows=9'; do
    # shellcheck disable=SC2086 # words
    kiln bench --size 1 --time 1 --device cpu --set $size --without amax quantize_nvfp4_f32 | awk '/^quantize/ { print $1, $3, $4, $5, $6, $(NF - 1), $NF }'
done
# Optional tensors that are left out are not there: 4 + 8 + 2 elements of f32 then, else 2 more for c.
gemm='gemm_f32 --set m=1 --set n=2 --set k=4 --without norm_weight --without bias'
# shellcheck disable=SC2086 # words
kiln bench --size 1 --time 1 --device cpu $gemm --without c | awk '/^gemm/ { print $1, $2, $(NF - 1), $NF }'
# shellcheck disable=SC2086 # words
kiln bench --size 1 --time 1 --device cpu $gemm | awk '/^gemm/ { print $1, $2, $(NF - 1), $NF }'
# Lengths are not there, nor the sizes of what is left out.
mha='mha_f32 --set tokens=8 --set kv_tokens=8'
# shellcheck disable=SC2086 # words
kiln bench --size 1 --time 1 --device cpu $mha --without mask | awk '/^mha/ { print $1, $2, $3, $4, $5, $6, $7 }'
# shellcheck disable=SC2086 # words
kiln bench --size 1 --time 1 --device cpu $mha | awk '/^mha/ { print $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 }'
# Sizes that follow two others, and those that follow a following one.
kiln bench --size 1 --time 1 --device cpu --set batch=4 mha_quantize_nvfp4_f32 | awk '/^mha/ { print $1, $2, $3, $4, $9 }'
kiln bench --size 1 --time 1 --device cpu --set batch=4 --set kv_tokens=8 mha_f32 | awk '/^mha/ { print $1, $3, $4, $5, $11, $12 }'
kiln bench --size 1 --time 1 --device cpu --without a gemm_f32
echo "exit $?"
kiln bench --size 1 --time 1 --device cpu --set cols=9223372036854775807 softmax_f32
echo "exit $?"
# One of which is 0.
kiln bench --size 1 --time 1 --device cpu --set nodes=0 kv_compact_f32
echo "exit $?"
