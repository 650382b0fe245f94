# The model of docs/examples/llama tells its whole story on each GPU of this machine, byte for byte.
. tests/tap.sh
. tests/gpu/gpu.sh
find_gpus
# shellcheck disable=SC2086 # words
exec scripts/story.sh "$KILN_BUILD" "$MODEL_DIR" "${KILN_GPU_STEPS-200}" $gpus
