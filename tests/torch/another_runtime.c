/* Has the name of a CUDA runtime. */
__attribute__((visibility("default"))) int cudaRuntimeGetVersion(int *version);

int cudaRuntimeGetVersion(int *version)
{
    *version = 11000;
    return 0;
}
