# A bad value of any option of any command: exit code 2 and one line that names the option and what it takes.
. tests/tap.sh
kiln=$KILN_BUILD/kiln
x=docs/examples/embedding.npy
ptx=docs/examples/bring-your-own-kernel/saxpy.sm_75.ptx
out=$KILN_SCRATCH/out
printf '\x93NUMPY' >"$KILN_SCRATCH/short.npy"
targets='sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a'
devices='must be cpu, cuda:N, rocm:N or hip:N with N from 0 to'
version='must be a CUDA version like 12.4, from 1.0 to 999.99'
sizes='must be a number of MiB from 1 to 1048576'
times='must be a number of milliseconds from 1 to 3600000'
number='must be a number from 0 to 2^63 - 1'

# command | option | bad value | what the line says of the valid ones | further arguments
rows() {
    cat <<END
images|target|zz|$targets
images|target||$targets
images|target|sm_|$targets
images|target|SM_90|$targets
images|target|sm_90 |$targets
images|target|gfx942:xnack|$targets
images|target|x86-64|$targets
explain|target|zz|$targets
explain|target||$targets
explain|target|gfx942:wave+|$targets
explain|driver|12|$version|--target sm_90
explain|driver||$version|--target sm_90
explain|driver|-12.4|$version|--target sm_90
explain|driver|12.4.1|$version|--target sm_90
explain|driver|0.9|$version|--target sm_90
explain|driver|1000.0|$version|--target sm_90
explain|driver|12.4|only an sm_ target has|--target gfx942
explain|device|zz|$devices
explain|device||$devices
explain|device|cpu:|$devices
explain|device|cpu:x|$devices
explain|device|cpu:-1|$devices
explain|device|cpu: 0|$devices
explain|device|cuda:10000|$devices
explain|device|any|$devices
explain|device|cpu:1|cpu has 1 device
run|device|zz|$devices|softmax_f32 --in x=$x --out y=$out
run|in|$x|must be NAME=FILE|softmax_f32
run|in|=$x|must be NAME=FILE|softmax_f32
run|in|x=|must be NAME=FILE|softmax_f32
run|in|y=$x|must be one of x|softmax_f32
run|in|x=absent.npy|No such file|softmax_f32
run|in|x=$KILN_SCRATCH/short.npy|not a .npy file|softmax_f32
run|out|$out|must be NAME=FILE|softmax_f32 --in x=$x
run|out|x=$out|must be one of y|softmax_f32 --in x=$x
run|out|sum=$out|is the file of sum|add_rmsnorm_f32 --out y=$out
run|out|y=absent/y.npy|cannot write absent/y.npy|softmax_f32 --device cpu --in x=$x
run|set|rows|must be NAME=VALUE|softmax_f32
run|set|gelu=tanh|must be one of rows, cols, approx|add_gelu_f32
run|set|approx=tan|must be one of erf,tanh,quick|add_gelu_f32
run|set|approx=erf,tanh|must be one of erf,tanh,quick|add_gelu_f32
run|set|cols=x|$number|softmax_f32
run|set|cols=-1|$number|softmax_f32
run|set|cols=+1|$number|softmax_f32
run|set|cols= 1|$number|softmax_f32
run|set|cols=9223372036854775808|$number|softmax_f32
run|set|cols=65|x is [512, 64], so cols is 64, but --set says 65|softmax_f32 --in x=$x --out y=$out
trace|out|absent/t.json|cannot write absent/t.json|softmax_f32 --device cpu --in x=$x --out y=$out
bench|device|zz|$devices
bench|size|0|$sizes
bench|size||$sizes
bench|size|-1|$sizes
bench|size|1.5|$sizes
bench|size|1048577|$sizes
bench|size|99999999999999999999|$sizes
bench|set|cols|must be NAME=VALUE
bench|set|columns=1|must be one of|softmax
bench|set|x=1|must be one of|softmax
bench|set|cols=x|$number|softmax
bench|set|approx=tan|must be one of erf,tanh,quick|add_gelu
bench|time|0|$times
bench|time||$times
bench|time|-1|$times
bench|time|0.5|$times
bench|time|3600001|$times
bench|without|zz|no function here has such an optional tensor|softmax
bench|without|x|no function here has such an optional tensor|softmax
bench|without||no function here has such an optional tensor|add_gelu
pack|name|1x|not a C identifier|--out $out sm_75=$ptx
pack|name||not a C identifier|--out $out sm_75=$ptx
pack|name|a-b|not a C identifier|--out $out sm_75=$ptx
pack|name|while|not a C identifier|--out $out sm_75=$ptx
pack|out|absent/out.c|cannot write absent/out.c|--name mine sm_75=$ptx
END
}

# trace's own options stand before the function, run's behind it: there is no other order in the table.
refused() { # COMMAND OPTION VALUE WORDS FURTHER
    local output status further
    read -ra further <<<"$5"
    rm -f "$out"
    output=$("$kiln" "$1" "--$2" "$3" "${further[@]}" 2>&1 </dev/null)
    status=$?
    printf '%s\n' "$output"
    [ $status = 2 ] && [ "$(printf '%s\n' "$output" | wc -l)" = 1 ] && printf '%s\n' "$output" | grep -qF -- "--$2" &&
        printf '%s\n' "$output" | grep -qF -- "$4" && [ ! -e "$out" ]
}

while IFS='|' read -r command option value words further; do
    check "$command --$option '$value'" refused "$command" "$option" "$value" "$words" "$further"
done < <(rows)

# Every option that takes a value, as each command's own help lists them.
all_are_tried() {
    local command option missing=0
    for command in $("$kiln" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
        for option in $("$kiln" help "$command" | sed -n 's/^  --\([a-z]*\) [A-Z].*/\1/p'); do
            rows | grep -q "^$command|$option|" || { echo "$command --$option is not tried" && missing=1; }
        done
    done
    return $missing
}
check "every option of every command is tried" all_are_tried
finish
