# The operators' own tests, unchanged, on a simulated device of every NVIDIA target: the images that ship are executed
# (PTX; for a cubin the PTX that it was assembled from) and compared with the f64 reference. Seeds order the blocks and
# warps: three of them on one target, and on the others each in its turn.
. tests/tap.sh
. tests/sim/tests/operators/operators.sh

operators_pass cuda:0 sm_75 1
operators_pass cuda:0 sm_80 1 2 3
operators_pass cuda:0 sm_86 2
operators_pass cuda:0 sm_89 3
operators_pass cuda:0 sm_90 1
operators_pass cuda:0 sm_100 2
operators_pass cuda:0 sm_120 3
finish
