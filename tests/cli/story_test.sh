# The model of docs/examples/llama tells its story on every device, where it is present.
exec scripts/story.sh "$KILN_BUILD" "$MODEL_DIR"
