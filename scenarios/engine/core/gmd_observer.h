/* gmd_observer.h - what an observer hears about the memory of tensors while a scenario runs. It
 * must ask nothing of the engine and change nothing in it. */
#ifndef GMD_OBSERVER_H
#define GMD_OBSERVER_H

struct storage;
struct tensor;

struct observer {
    void *context;
    /* A storage got its block; right after the request. */
    void (*made)(void *context, struct storage *storage);
    /* Its block is given back; right before the request. */
    void (*gone)(void *context, struct storage *storage);
    /* A tensor was made over a storage; the first one has the shape that the memory was meant for.
     */
    void (*shaped)(void *context, const struct tensor *tensor);
};

#endif
