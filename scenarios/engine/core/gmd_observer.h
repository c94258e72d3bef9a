/* gmd_observer.h - what a looker-on is told of the tensors' memory while a scenario runs: which
 * blocks there are and what each is for. Nothing is asked of the engine, and nothing changes in it.
 */
#ifndef GMD_OBSERVER_H
#define GMD_OBSERVER_H

struct gmd_storage;
struct gmd_tensor;

typedef struct gmd_observer {
    void *context;
    /* A storage got its block; right after the request. */
    void (*made)(void *context, struct gmd_storage *storage);
    /* Its block is given back; right before the request. */
    void (*gone)(void *context, struct gmd_storage *storage);
    /* A tensor over a storage: the first one tells the shape that the memory was meant for. */
    void (*shaped)(void *context, const struct gmd_tensor *tensor);
} gmd_observer;

#endif
