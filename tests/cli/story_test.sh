# The model of docs/examples/llama tells its story on every device, where it is present; the beginning of it on simulated
# GPUs, where `make story` tells all of it.
exec scripts/story.sh "$KILN_BUILD" "$MODEL_DIR" 40
