# The operators' own tests, unchanged, on a simulated device of every AMD target: the machine code that ships is executed
# and compared with the f64 reference. gfx906, gfx1010, gfx1032, gfx1102 and gfx1200 run the images of their generic
# families. Seeds order the groups and waves: three of them on one target, and on the others each in its turn. Needs LLVM 19's disassembler, which the simulated driver opens.
. tests/tap.sh
. tests/sim/tests/operators/operators.sh

ldconfig -p | grep -q 'libLLVM\.so\.19\.1' ||
    skip_all "there is no libLLVM.so.19.1 here (Debian's libllvm19): no AMD code can be executed"

operators_pass rocm:0 gfx90a 1
operators_pass rocm:0 gfx942 1 2 3
operators_pass rocm:0 gfx1030 2
operators_pass rocm:0 gfx1100 3
operators_pass rocm:0 gfx1201 1
operators_pass rocm:0 gfx906 2
operators_pass rocm:0 gfx1010 3
operators_pass rocm:0 gfx1032 1
operators_pass rocm:0 gfx1102 2
operators_pass rocm:0 gfx1200 3
finish
