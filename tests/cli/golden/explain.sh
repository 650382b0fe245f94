# kiln explain without a device: which CPU build, in text and JSON, and what it refuses.
. "$GOLDEN/lib.sh"
kiln explain --target x86-64-v3 softmax | sed -n '/^x86/p;/^softmax f32/,/^softmax f16/{/cpu/p}'
kiln explain --target x86-64-v3 --json softmax | head -5
try kiln explain --target x86-64-v3 --device cpu
try kiln explain --target x86-64-v3 --driver 12.4
try kiln explain --driver 12.4
try kiln explain --target sm_90 --driver 12
try kiln explain --target sm_90 --driver twelve
try kiln explain --target sm_90 --driver 0.0
try kiln explain --all softmax
