# plugin.c: an event is queried on each free, to no end. It is made for that, as one that is kept would
# be a leak, which is for correctness to find.
/^void gmd_free(/,/^}/ {
    /(void)size;/ a\
    cudaEvent_t event;\
    if (cudaEventCreateWithFlags(\&event, cudaEventDisableTiming) == cudaSuccess) {\
        cudaEventQuery(event);\
        cudaEventDestroy(event);\
    }
}
