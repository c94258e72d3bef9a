#include "clean_up.h"

#include "block_requests.h"
#include "notes.h"
#include "view.h"

void free_everything(gmd_session *s)
{
    for (uint32_t id = 0; id < s->block_end && !s->is_over; id++) {
        if (s->blocks[id].live.address) {
            gmd_live_block freed;
            gmd_error error;
            s->view.request = &(gmd_request){.op = GMD_OP_FREE, .block = id};
            s->view.request_index = s->request_index;
            gmd_session_begin(s);
            gmd_session_look_at(s, s->blocks[id].live.device);
            gmd_status status = block_free(s, &s->blocks[id], &freed, &error);
            if (status != GMD_OK) {
                session_stop(s, status, &error);
            } else {
                gmd_session_judge(s);
            }
            atomic_fetch_add_explicit(&s->shared->beats, 1, memory_order_release);
        }
    }
    s->view.request = NULL; /* it was this function's */
}
