# The operators' own tests, unchanged, on a simulated device of every AMD target: the machine code that ships is executed
# and compared with the f64 reference. gfx906, gfx1010, gfx1032, gfx1102 and gfx1200 run the images of their generic
# families, which come from the sources of the targets above them; operators without sources of their own run on one of
# the last three, another time on another. Targets of one generation share the precisions among them, but operators with
# sources of their own run on some in f32 and in f16 or bf16. Seeds order the groups and waves. Needs LLVM 19's
# disassembler, which the simulated driver opens.
. tests/tap.sh
. tests/sim/tests/operators/operators.sh

ldconfig -p | grep -q 'libLLVM\.so\.19\.1' ||
    skip_all "there is no libLLVM.so.19.1 here (Debian's libllvm19): no AMD code can be executed"

operators_pass rocm:0 gfx90a 1 f16
operators_pass rocm:0 gfx942 2 f32
operators_pass rocm:0 gfx942 2 "$(draw f16 bf16)" tuned
operators_pass rocm:0 gfx1030 3 bf16
operators_pass rocm:0 gfx1100 1 f32 tuned
operators_pass rocm:0 gfx1100 1 "$(draw f16 bf16)" tuned
operators_pass rocm:0 gfx1100 1 f16 portable
operators_pass rocm:0 gfx1201 2 bf16
operators_pass rocm:0 gfx906 3 bf16
operators_pass rocm:0 gfx1010 1 f16
operators_pass rocm:0 gfx1032 2 f32 tuned
operators_pass rocm:0 gfx1102 3 bf16 tuned
operators_pass rocm:0 gfx1200 1 f32 tuned
operators_pass rocm:0 "$(draw gfx1032 gfx1102 gfx1200)" 2 f32 portable
finish
