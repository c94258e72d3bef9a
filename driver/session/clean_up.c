#include "clean_up.h"

#include "block_requests.h"
#include "notes.h"
#include "view.h"

void free_everything(gmd_session *s)
{
    session_block *b = NULL;
    for (uint32_t id = 0; !s->is_over && (b = live_blocks_next(&s->blocks, &id)) != NULL;) {
        gmd_live_block freed;
        gmd_error error;
        s->view.request = &(gmd_request){.op = GMD_OP_FREE, .block = b->live.id};
        s->view.request_index = s->request_index;
        view_begin(s);
        view_device(s, b->live.device);
        gmd_status status = block_free(s, b, &freed, &error);
        if (status != GMD_OK) {
            session_stop(s, status, &error);
        } else {
            view_judge(s);
        }
        atomic_fetch_add_explicit(&s->shared->beats, 1, memory_order_release);
    }
    s->view.request = NULL; /* it was this function's */
}
