# A progress line on a terminal, removed at the end; none elsewhere.
script -qec 'kiln bench --size 1 --time 1 --device cpu softmax_f32 >/dev/null' /dev/null | cat -v
echo
kiln bench --size 1 --time 1 --device cpu softmax_f32 2>&1 >/dev/null | wc -c
