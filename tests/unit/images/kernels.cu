// Three kernels for the tests of the image readers: one struct by value; scalars and static shared memory; a private
// array, for what spills and stacks look like.
struct arguments {
    const float *x;
    float *y;
    unsigned count;
    unsigned reserved;
};

extern "C" __global__ void __launch_bounds__(256) scale(__grid_constant__ const arguments a) {
    unsigned i = threadIdx.x + 256 * blockIdx.x;
    if (i < a.count) a.y[i] = a.x[i] * 2;
}

extern "C" __global__ void turn(float *x, int factor) {
    __shared__ float tile[64];
    tile[threadIdx.x & 63] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[(threadIdx.x + 1) & 63] * factor;
}

extern "C" __global__ void mixed(float *x, double d, char c, short s) {
    extern __shared__ float dynamic[];
    dynamic[threadIdx.x] = x[c] * s + d;
    __syncthreads();
    x[threadIdx.x] = dynamic[s] + d;
}
