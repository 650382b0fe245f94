# Which image GPUs that are not here would get, every reason in words, and the exit status without one.
. "$GOLDEN/lib.sh"
kiln explain --target sm_90 --driver 12.4 softmax | sed -n '1p;/^softmax f32/,/^softmax f16/{/^soft/!p}' | grep -v ' cpu: '
echo
for target in sm_75 sm_89 sm_90a sm_103 sm_121 gfx942 gfx90a:xnack+ gfx1151 gfx1036; do
    kiln explain --target "$target" mul_add | sed -n '1p;/^mul_add f16/,/^mul_add bf16/{/^  [>+]/p}'
done
echo
for target in sm_70 gfx950 gfx908; do
    kiln explain --target "$target" --all | tail -1 | sed "s/^[1-9][0-9]*/N/" # one for each precision of each operator
    echo "exit ${PIPESTATUS[0]}"
done
echo
for target in sm_90a sm_80 gfx942; do
    kiln explain --target "$target" gemm | sed -n '/^gemm bf16/,${/^  [>]/p;/^      /p}'
done
try kiln explain --target gfx90a:xnack
