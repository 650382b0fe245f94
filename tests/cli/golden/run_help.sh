# The parameters of each operator.
for function in add_gelu_f32 mul_add_f16 silu_mul_bf16 softmax_f16; do
    kiln run --help "$function"
done
kiln run --help | sed -n '/^functions:$/,$p'
