# The operators' own tests, unchanged, on a simulated device of every NVIDIA target: the images that ship are executed
# (PTX; for a cubin the PTX that it was assembled from) and compared with the f64 reference. Targets whose cubins come
# from one text share the precisions among them, or draw one; for operators that have no tuned text these are sm_75,
# sm_80 and sm_90. Seeds order the blocks and warps.
. tests/tap.sh
. tests/sim/tests/operators/operators.sh

operators_pass cuda:0 sm_75 1 bf16
operators_pass cuda:0 sm_80 2 f32
operators_pass cuda:0 sm_86 3 f16 tuned
operators_pass cuda:0 sm_89 1 bf16 tuned
operators_pass cuda:0 sm_90 2 f16 portable
operators_pass cuda:0 sm_90 2 f32 tuned
operators_pass cuda:0 sm_90 2 "$(draw f16 bf16)" tuned
operators_pass cuda:0 sm_100 3 "$(draw f32 f16 bf16)"
operators_pass cuda:0 sm_120 1 f16 tuned
finish
