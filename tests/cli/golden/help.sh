# The list of commands, and each command's options.
kiln help
for command in info images verify explain run trace bench; do
    echo "---- $command"
    kiln help "$command"
done
