# plugin.c: an event is queried on each free, to no end. It is made for that, as one that is kept would
# be a leak, which is for correctness to find, and so would the error be of one that cannot be made.
/^void gmd_free(/,/^}/ {
    /(void)size;/ a\
    cudaEvent_t event;\
    if (cudaEventCreateWithFlags(\&event, cudaEventDisableTiming) == cudaSuccess) {\
        cudaEventQuery(event);\
        cudaEventDestroy(event);\
    } else {\
        cudaGetLastError();\
    }
}
