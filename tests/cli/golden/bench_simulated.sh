# The table of kiln bench on a simulated device, without the numbers of instructions, which change with the images; and on
# one that executes nothing.
export KILN_SIM_DEVICES=sm_90 LD_LIBRARY_PATH=$RECORDING
kiln bench --device cuda:0 --set rows=4 --set cols=4096 softmax | awk '/^softmax/ { $5 = "..." } 1'
# Indices and lengths are those of a full call: of 4 trees 7 nodes each are moved, keys and values of 4096 bytes.
kiln bench --device cuda:0 --json kv_compact_f32 | grep -E '"(sizes|global_written_bytes)"'
KILN_SIM_RECORD=1 kiln bench --device cuda:0 --set rows=4 --set cols=4096 softmax_f32
