# kiln run on recorded devices: which one, which image, and no output file after a failure. Nothing leaks on the way.
. "$GOLDEN/lib.sh"
exec 2>&1
f32 0 0 | npy x.npy '<f4' '(1, 2)'
softmax() {
    kiln run softmax_f32 --in x=x.npy --out y=y.npy "$@"
}
recorded sm_90,gfx942 softmax
recorded sm_90,gfx942 softmax --device rocm:0
recorded sm_90,sm_89 softmax --device cuda:1
rm y.npy
recorded sm_90 softmax --device cuda:2
echo "exit $?"
for fault in cuMemAlloc_v2,1,2 cuMemcpyHtoDAsync_v2,1,700 cuModuleLoadDataEx,1,2 cuModuleLoadDataEx,1,209 \
    cuLaunchKernel,1,719 cuMemcpyDtoHAsync_v2,1,700; do
    echo "$fault"
    KILN_SIM_FAULT=$fault recorded sm_90 softmax 2>&1 | sed 's/kernel .*: cu/kernel ...: cu/'
    echo "exit ${PIPESTATUS[0]}"
done
for fault in hsa_amd_memory_pool_allocate,1,4104 hsa_executable_load_agent_code_object,1,4112; do
    echo "$fault"
    KILN_SIM_FAULT=$fault recorded gfx942 softmax 2>&1 | grep -v ': is for another'
    echo "exit ${PIPESTATUS[0]}"
done
ls
