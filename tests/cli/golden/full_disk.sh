# Output that cannot be written is an error.
kiln help >/dev/full
echo "exit $?"
