// Few registers for many live values: some are spilled to local memory, by pieces of known number.
extern "C" __global__ void __maxnreg__(24) spills(float *out, const float *in) {
    float v[28];
#pragma unroll
    for (int i = 0; i < 28; i++) v[i] = in[threadIdx.x * 28 + i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 28; i++) out[threadIdx.x * 28 + i] = v[27 - i] * v[(i * 5) % 28];
}
