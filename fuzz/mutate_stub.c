#include "mutate.h"
#include "random.h"
#include <string.h>
size_t gmd_mutate(uint8_t *data, size_t size, size_t max_size, uint64_t seed){
 gmd_random r={seed}; size_t n=(size-16)/8; if(size<24) return size;
 switch(gmd_random_below(&r,4)){
 case 0: {size_t i=gmd_random_below(&r,n); memmove(data+16+i*8,data+24+i*8,size-24-i*8); return size-8;}
 case 1: {if(size+8>max_size) return size; size_t i=gmd_random_below(&r,n); memmove(data+24+i*8,data+16+i*8,size-16-i*8); return size+8;}
 default: data[16+gmd_random_below(&r,size-16)]^=1<<gmd_random_below(&r,8); return size;}
}
size_t gmd_cross(const uint8_t *a, size_t as, const uint8_t *b, size_t bs, uint8_t *out, size_t max, uint64_t seed){
 gmd_random r={seed}; size_t n=16+8*gmd_random_below(&r,(as-16)/8+1); if(n>max)n=max; memcpy(out,a,n); size_t k=bs>16?(bs-16)/8*8:0; size_t o=k?8*gmd_random_below(&r,k/8):0; size_t m=k-o; if(n+m>max) m=(max-n)/8*8; memcpy(out+n,b+16+o,m); return n+m;}
