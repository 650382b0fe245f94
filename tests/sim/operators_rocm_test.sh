# The operators' own tests, unchanged, on a simulated device of every AMD target: the machine code that ships is executed
# and compared with the f64 reference. gfx906, gfx1010, gfx1032, gfx1102 and gfx1200 run the images of their generic
# families. Needs LLVM 19's disassembler, which the simulated driver opens.
. tests/tap.sh
. tests/sim/operators.sh

ldconfig -p | grep -q 'libLLVM\.so\.19\.1' ||
    skip_all "there is no libLLVM.so.19.1 here (Debian's libllvm19): no AMD code can be executed"

for device in gfx90a gfx942 gfx1030 gfx1100 gfx1201 gfx906 gfx1010 gfx1032 gfx1102 gfx1200; do
    operators_pass rocm:0 $device
done
finish
