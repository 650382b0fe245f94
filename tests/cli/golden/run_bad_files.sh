# Files that are not what they should be: one line, exit 2, no output file.
. "$GOLDEN/lib.sh"
bad() {
    try kiln run softmax_f32 --in "x=$1" --out y=y.npy
}
f32 1 2 3 | npy truncated.npy '<f4' '(2, 2)' && bad truncated.npy
f32 1 2 3 1 2 | npy trailing.npy '<f4' '(2, 2)' && bad trailing.npy
f32 1 2 3 1 | npy fortran.npy '<f4' '(2, 2)' True && bad fortran.npy
f32 1 2 3 1 | npy big.npy '>f4' '(2, 2)' && bad big.npy
f32 1 2 3 1 | npy object.npy '|O' '(2, 2)' && bad object.npy
f32 1 2 3 1 | npy double.npy '<f8' '(2,)' && bad double.npy
f32 1 | npy overflow.npy '<f4' '(4294967296, 4294967296, 4294967296)' && bad overflow.npy
f32 1 | npy negative.npy '<f4' '(-1,)' && bad negative.npy
f32 1 | npy promise.npy '<f4' '(1152921504606846976,)' && bad promise.npy
printf '\x93NUMPY\x01\x00\xff\xff' >header.npy && bad header.npy
printf '\x93NUMPY\x02\x00\xff\xff\xff\xff' >long.npy && bad long.npy
printf '\x93NUMPY\x09\x00\x00\x00' >version.npy && bad version.npy
echo 'hello' >text.npy && bad text.npy
: >empty.npy && bad empty.npy
mkfifo fifo.npy && bad fifo.npy
mkdir folder.npy && bad folder.npy
bad /dev/zero
bad absent.npy
bad ''
ls
