#include "sync.h"

gmd_status session_sync(gmd_session *s, int device, uint32_t stream, gmd_error *error)
{
    cudaStream_t handle;
    if (stream == GMD_ALL_STREAMS) {
        holds_release_device(s->holds, device);
    } else if (streams_find(&s->streams, device, stream, &handle)) {
        holds_release_stream(s->holds, device, handle);
    }
    gmd_status status = streams_sync(&s->streams, device, stream, s->moment, error);
    holds_beat(s->holds);
    return status;
}
